//! Services and their identities.

use std::{fmt, str::FromStr};

use crate::{QueueName, dto_type::UnknownName, dto_type::closed_text_enum};

closed_text_enum!(
    /// The services of the platform. A worker service owns the queue of its name.
    ServiceName, "service" {
        /// Renders labels linked to an ECC model.
        EccImageRender = "ecc-image-render-service",
        /// Renders labels linked to a Studio design.
        StudioRenderer = "studio-renderer",
        /// One picture per label out of the two sources.
        EslImageMerger = "esl-image-merger",
        /// Sends the picture to the label.
        HardwareExporter = "hardware-exporter",
        /// Lets operators call the triggers. Has no queue.
        OperatorGateway = "operator-gateway",
        /// Writes the retailer's records: items, labels, links, models, designs. Has no queue.
        RecordImport = "record-import",
    }
);

impl ServiceName {
    /// The queue this service owns, if it is a worker service.
    pub fn queue(self) -> Option<QueueName> {
        match self {
            Self::EccImageRender | Self::StudioRenderer | Self::EslImageMerger | Self::HardwareExporter => {
                self.as_str().parse().ok()
            }
            Self::OperatorGateway | Self::RecordImport => None,
        }
    }

    /// The service that owns `queue`.
    pub fn of_queue(queue: &QueueName) -> Option<Self> {
        queue.as_str().parse::<Self>().ok().filter(|service| service.queue().is_some())
    }
}

/// Who calls: `svc:{service name}`, proven by a token minted from the service's own key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServiceIdentity(pub ServiceName);

impl fmt::Display for ServiceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "svc:{}", self.0)
    }
}

impl FromStr for ServiceIdentity {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        text.strip_prefix("svc:").ok_or(UnknownName("service identity"))?.parse().map(Self)
    }
}
