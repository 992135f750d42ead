//! Another build of the renderers over the same records.

use std::collections::BTreeMap;

use domain::{DtoType, ServiceName};
use picture::Picture;
use proto::{
    cqs::v1::Operation, ecc_image_render::v1::TriggerEccStoreRerenderRequest,
    studio_renderer::v1::TriggerStudioStoreRerenderRequest,
};
use render::{EccInput, RenderError};

use super::STUDIO;
use crate::tests::world::{World, counts};

/// The renderer of another build: one pixel of the items whose name begins with B comes out otherwise.
fn spotted(picture: Result<Picture, RenderError>, input: &EccInput<'_>) -> Result<Picture, RenderError> {
    let picture = picture?;
    if !input.item.get("name").is_some_and(|name| name.starts_with('B')) {
        return Ok(picture);
    }
    let mut indices = picture.indices().to_vec();
    indices[0] = 1 - indices[0];
    Ok(Picture::new(picture.width(), picture.height(), picture.palette(), indices).unwrap())
}

#[tokio::test]
async fn another_build_replaces_exactly_the_pictures_that_differ() {
    let mut world = World::new();
    let old = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.model("N", "n1").await;
    world.design("D", "d1").await;
    // A0, B0 on M, A1, B1 on N, all four on D too where the id ends in S.
    for (label, name, model) in [("A0", "A", "M"), ("B0", "B", "M"), ("A1", "A", "N"), ("B1", "B", "N")] {
        world.item(label, name).await;
        world.esl(label).await;
        world.link(label, label, model).await;
        let studio = format!("{label}S");
        world.esl(&studio).await;
        world.studio_link(&studio, label, "D").await;
    }
    world.idle().await;
    old.stop().await;
    let before = world.all_pictures().await;

    world.engine.ecc = |model, input| spotted(render::render(model, input), input);
    world.engine.studio = |design, input| spotted(render::studio_render(design, input), input);
    let new = world.work().await;
    let refreshed = world.refreshed("M", "CHG-1").await;
    let whole = world.ecc_store_rerendered("CHG-2").await;
    let studio = world.studio_store_rerendered("CHG-3").await;
    let again = world.studio_store_rerendered("CHG-4").await;
    let ecc = ServiceName::EccImageRender;
    // Of M's two, one differs; of all four then only N's one is left to replace; of D's four, two.
    assert_eq!((counts(&refreshed, ecc), counts(&whole, ecc)), ((2, 2, 1, 0), (4, 4, 3, 0)));
    assert_eq!((counts(&studio, STUDIO), counts(&again, STUDIO)), ((4, 4, 2, 0), (4, 4, 4, 0)));
    for (operation, further) in [(&refreshed, 1), (&whole, 1), (&studio, 2), (&again, 0)] {
        for service in [ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
            assert_eq!(counts(operation, service), (further, further, 0, 0), "{service}: only what differs goes on");
        }
    }
    for (urn, (version, payload)) in world.all_pictures().await {
        let (old_version, old_payload) = &before[&urn];
        let differs = urn.rsplit('/').next().unwrap().starts_with('B');
        assert_eq!((version > *old_version, payload != *old_payload), (differs, differs), "{urn}");
    }
    new.stop().await;
}

impl World {
    async fn studio_store_rerendered(&self, tracking_id: &str) -> Operation {
        let request = TriggerStudioStoreRerenderRequest {
            tenant_id: "T".into(),
            store_id: "S".into(),
            reason: "CHG-3: test".into(),
            tracking_id: tracking_id.into(),
            operator_subject: "ops@example".into(),
            ..TriggerStudioStoreRerenderRequest::default()
        };
        let mut triggers = self.studio_triggers(ServiceName::OperatorGateway);
        triggers.trigger_studio_store_rerender(request).await.unwrap();
        self.finished(tracking_id).await
    }

    async fn ecc_store_rerendered(&self, tracking_id: &str) -> Operation {
        let request = TriggerEccStoreRerenderRequest {
            tenant_id: "T".into(),
            store_id: "S".into(),
            reason: "CHG-3: test".into(),
            tracking_id: tracking_id.into(),
            operator_subject: "ops@example".into(),
            ..TriggerEccStoreRerenderRequest::default()
        };
        self.triggers(ServiceName::OperatorGateway).trigger_ecc_store_rerender(request).await.unwrap();
        self.finished(tracking_id).await
    }

    /// Version and bytes of both sources' pictures of the labels of [`another_build_replaces_exactly_the_pictures_that_differ`].
    async fn all_pictures(&self) -> BTreeMap<String, (i64, Vec<u8>)> {
        let mut all = BTreeMap::new();
        for label in ["A0", "B0", "A1", "B1"] {
            for (dto_type, label) in
                [(DtoType::EccEslImage, label.to_owned()), (DtoType::StudioEslImage, format!("{label}S"))]
            {
                let urn = format!("t/T/s/S/{}/{label}", dto_type.collection());
                let dto = self.read(dto_type, &urn).await;
                assert!(dto.exists, "{urn}");
                all.insert(urn, (dto.version, dto.payload.to_vec()));
            }
        }
        all
    }
}
