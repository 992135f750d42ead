//! cqs
