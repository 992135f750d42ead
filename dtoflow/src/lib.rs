//! dtoflow
