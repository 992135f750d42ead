//! One gateway over the fakes, with two tenants that hold the same records.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Router, body::Body};
use daemon::identity::{Registry, ServiceCredentials, ServiceKey, Verifier};
use domain::{Clock, DtoType, ManualClock, OperatorScope, SeededIds, ServiceName, StoreId, TenantId, Timestamp};
use gateway::{
    GatewayParts, Issuer, IssuerSettings, OperatorPolicy, OperatorVerifier, PlanKey, Rules, router,
    token::{OperatorClaims, mint},
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use picture::{Palette, Picture};
use proto::{
    Transport,
    cqs::v1::{self as cqs, change_queue_service_server::ChangeQueueServiceServer},
    dtoflow::v1::dto_flow_service_server::DtoFlowServiceServer,
    ecc_image_render::v1::ecc_image_render_triggers_server::EccImageRenderTriggersServer,
    hardware_exporter::v1::hardware_exporter_triggers_server::HardwareExporterTriggersServer,
    records::v1 as records,
    studio_renderer::v1::studio_renderer_triggers_server::StudioRendererTriggersServer,
};
use serde_json::Value;
use tonic::service::Routes;
use tower::ServiceExt as _;

use crate::fakes::{FakeCqs, FakeDtoFlow, FakeTriggers};

/// 2026-06-01T00:00:00Z
pub(crate) const NOW: Timestamp = Timestamp::from_ms(1_780_272_000_000);

pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) cqs: FakeCqs,
    pub(crate) dtoflow: FakeDtoFlow,
    pub(crate) triggers: FakeTriggers,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) operator_key: ServiceKey,
}

/// What a test changes of the gateway's parts.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) platform: Option<Transport>,
    pub(crate) triggers: Option<Transport>,
    pub(crate) cors: Vec<&'static str>,
    pub(crate) disk_is_full: bool,
    pub(crate) rules: Option<Rules>,
    pub(crate) login: Option<gateway::Login>,
    /// Issuers beside the local one.
    pub(crate) issuers: Vec<IssuerSettings>,
    pub(crate) policy: OperatorPolicy,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The problem's code and field, once its form is right.
    pub(crate) fn problem(&self) -> (String, String) {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{}", self.text());
        let body = self.json();
        assert_eq!(body["status"], self.status.as_u16(), "{body}");
        let code = body["code"].as_str().unwrap().to_owned();
        assert_eq!(body["type"], format!("/problems/{code}"));
        assert!(body["title"].is_string() && body["detail"].is_string() && body["retryable"].is_boolean());
        (code, body["field"].as_str().unwrap_or_default().to_owned())
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Changes::default())
    }

    pub(crate) fn with(changes: Changes) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let shared: Arc<dyn Clock> = clock.clone();
        let service_key = ServiceKey::generate().unwrap();
        let operator_key = ServiceKey::generate().unwrap();
        let registry =
            Registry::standard_document(&[(ServiceName::OperatorGateway, service_key.public().clone())]).unwrap();
        let verifier = Verifier::new(Arc::new(Registry::parse(&registry).unwrap()), Arc::clone(&shared));
        let plan_key = service_key.clone();
        let credentials = ServiceCredentials::new(ServiceName::OperatorGateway, service_key, Arc::clone(&shared));
        let (cqs, dtoflow) = (FakeCqs::default(), FakeDtoFlow::default());
        let triggers = FakeTriggers::new(cqs.clone(), dtoflow.clone());
        let platform = Routes::new(ChangeQueueServiceServer::new(cqs.clone()))
            .add_service(DtoFlowServiceServer::new(dtoflow.clone()))
            .add_service(daemon::serve::Health::new(move || !changes.disk_is_full));
        let trigger_routes = Routes::new(EccImageRenderTriggersServer::new(triggers.clone()))
            .add_service(StudioRendererTriggersServer::new(triggers.clone()))
            .add_service(HardwareExporterTriggersServer::new(triggers.clone()));
        let local = |routes| daemon::serve::in_process(routes, verifier.clone());
        let platform = changes.platform.unwrap_or_else(|| local(platform));
        let trigger_transport = changes.triggers.unwrap_or_else(|| local(trigger_routes));
        let mut issuers = vec![Issuer::local(operator_key.public()).unwrap()];
        issuers.extend(changes.issuers.into_iter().map(|settings| Issuer::new(settings).unwrap()));
        let router = router(GatewayParts {
            platform: credentials.attach(platform),
            triggers: [ServiceName::EccImageRender, ServiceName::StudioRenderer, ServiceName::HardwareExporter]
                .map(|service| (service, credentials.attach(trigger_transport.clone())))
                .into(),
            operators: OperatorVerifier::new(issuers, Arc::clone(&shared)),
            plans: PlanKey::new(plan_key).unwrap(),
            policy: changes.policy,
            cors: changes.cors.into_iter().map(|origin| origin.parse().unwrap()).collect(),
            login: changes.login,
            rules: changes.rules.unwrap_or_default(),
            webhooks: gateway::Webhooks::default(),
            shutdown: daemon::shutdown::Shutdown::default(),
            clock: shared,
            ids: Arc::new(SeededIds::new(7)),
        });
        for tenant in ["acme", "rival"] {
            load(&dtoflow, &cqs, tenant);
        }
        Self { router, cqs, dtoflow, triggers, clock, operator_key }
    }

    /// A token for `acme` with every scope.
    pub(crate) fn token(&self) -> String {
        self.token_with(|_| {})
    }

    pub(crate) fn token_with(&self, change: impl FnOnce(&mut OperatorClaims)) -> String {
        let mut claims = OperatorClaims {
            subject: "ada@acme.example".parse().unwrap(),
            scopes: OperatorScope::ALL.to_vec(),
            tenants: vec!["acme".parse().unwrap()],
            stores: None,
            issued_at: self.clock.now(),
            lifetime_s: 3_600,
        };
        change(&mut claims);
        mint(&self.operator_key, &claims).unwrap()
    }

    /// A token that is right in all but its audience.
    pub(crate) fn token_for(&self, audience: &str) -> String {
        let seconds = self.clock.now().as_ms() / 1_000;
        let claims = serde_json::json!({
            "iss": gateway::token::LOCAL_ISSUER, "aud": audience, "sub": "ada@acme.example", "iat": seconds, "nbf": seconds,
            "exp": seconds + 3_600, "scope": "labels:read", "tenants": ["acme"]
        });
        let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::EdDSA);
        header.typ = Some("at+jwt".to_owned());
        jsonwebtoken::encode(&header, &claims, self.operator_key.encoding()).unwrap()
    }

    /// A token for store s1 of `acme` only.
    pub(crate) fn store_token(&self) -> String {
        let store: (TenantId, StoreId) = ("acme".parse().unwrap(), "s1".parse().unwrap());
        self.token_with(|claims| claims.stores = Some(vec![store]))
    }

    pub(crate) async fn raw(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.raw(Request::get(path).header("authorization", format!("Bearer {token}")).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::post(path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(body.into())
            .unwrap();
        self.raw(request).await
    }

    pub(crate) async fn post_json(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.post(token, path, body.to_string()).await
    }

    pub(crate) fn audit_rows(&self) -> usize {
        self.cqs.state().audit.len()
    }
}

/// A picture of 8 by 4 pixels.
pub(crate) fn small_picture() -> Picture {
    let indices: Vec<u8> = (0..32).map(|index| index % 2).collect();
    Picture::new(8, 4, Palette::Bw, indices).unwrap()
}

fn load(dtoflow: &FakeDtoFlow, cqs: &FakeCqs, tenant: &str) {
    let panel = records::EslType { width: 8, height: 4, palette: 1, rotation: 0, name: "small".to_owned() };
    dtoflow.put(DtoType::EslType, &format!("t/{tenant}/esltypes/X"), &panel);
    for design in ["D", "E"] {
        let record =
            records::Design { svg: "<svg/>".to_owned(), mappings: "{}".to_owned(), name: format!("design {design}") };
        dtoflow.put(DtoType::Design, &format!("t/{tenant}/designs/{design}"), &record);
    }
    for (store, labels) in [("s1", ["E1", "E2", "E3"].as_slice()), ("s2", ["F1"].as_slice())] {
        let at = |collection: &str, id: &str| format!("t/{tenant}/s/{store}/{collection}/{id}");
        for model in ["M", "N"] {
            let record = records::EccModel { layout: "{}".to_owned(), name: format!("model {model}") };
            dtoflow.put(DtoType::EccModel, &at("eccmodels", model), &record);
        }
        let item = records::StoreItemValues { values: BTreeMap::from([("name".to_owned(), "Äpfel".to_owned())]) };
        dtoflow.put(DtoType::StoreItemValues, &at("items", "I1"), &item);
        let access_point = records::AccessPoint { driver: "folder".to_owned(), address: "secret".to_owned() };
        dtoflow.put(DtoType::AccessPoint, &at("accesspoints", "ap-1"), &access_point);
        for label in labels {
            let hardware = records::StoreEsl {
                esltype_id: "X".to_owned(),
                accesspoint_id: "ap-1".to_owned(),
                hardware_address: format!("hw-{label}"),
            };
            dtoflow.put(DtoType::StoreEsl, &at("esls", label), &hardware);
            let link = records::EccLink {
                item_id: "I1".to_owned(),
                model_id: if *label == "E3" { "N" } else { "M" }.to_owned(),
                parameters: BTreeMap::new(),
            };
            dtoflow.put(DtoType::EccLink, &at("ecclinks", label), &link);
        }
        // E2 and F1 have both links.
        let label = if store == "s1" { "E2" } else { "F1" };
        let link = records::StudioLink { item_id: "I2".to_owned(), design_id: "D".to_owned() };
        dtoflow.put(DtoType::StudioLink, &at("studiolinks", label), &link);
        if store == "s1" {
            put_picture(dtoflow, &at("ecceslimages", "E1"), &at("eslimages", "E1"), &at("eslstatuses", "E1"));
        }
    }
    let store = format!("t/{tenant}/s/s1");
    let hardware = records::StoreEsl::default();
    for (dto_type, urn) in [
        (DtoType::EccModel, format!("{store}/eccmodels/gone")),
        (DtoType::AccessPoint, format!("{store}/accesspoints/gone")),
        (DtoType::StoreEsl, format!("{store}/esls/gone")),
        (DtoType::StoreEsl, format!("t/{tenant}/s/gone/esls/E9")),
        (DtoType::Design, format!("t/{tenant}/designs/gone")),
    ] {
        dtoflow.put(dto_type, &urn, &hardware);
        dtoflow.delete(dto_type, &urn);
    }
    cqs.state().operations.push(operation(tenant, "op-1", "s1", cqs::OperationState::Running));
    cqs.state().operations.push(operation(tenant, "op-2", "s2", cqs::OperationState::FinishedWithFailures));
}

fn put_picture(dtoflow: &FakeDtoFlow, source: &str, image: &str, status: &str) {
    let (packed, digest) = small_picture().pack_with_digest().unwrap();
    let digest = digest.as_bytes().to_vec();
    let source_record = records::SourceEslImage {
        picture: packed.into(),
        digest: digest.clone().into(),
        width: 8,
        height: 4,
        palette: 1,
    };
    dtoflow.put(DtoType::EccEslImage, source, &source_record);
    let chosen = records::EslImage { source: 1, digest: digest.clone().into(), width: 8, height: 4, palette: 1 };
    dtoflow.put(DtoType::EslImage, image, &chosen);
    let delivered = records::StoreEslStatus {
        state: records::DeliveryState::Confirmed.into(),
        confirmed_digest: digest.into(),
        confirmed_hardware_address: "hw-E1".to_owned(),
        evidence: records::Evidence::Written.into(),
        ..records::StoreEslStatus::default()
    };
    dtoflow.put(DtoType::StoreEslStatus, status, &delivered);
}

fn operation(tenant: &str, tracking_id: &str, store: &str, state: cqs::OperationState) -> cqs::Operation {
    let failed = i64::from(state == cqs::OperationState::FinishedWithFailures);
    cqs::Operation {
        tenant_id: tenant.to_owned(),
        tracking_id: tracking_id.to_owned(),
        queue_name: "ecc-image-render-service".to_owned(),
        trigger: "model-refresh".to_owned(),
        scope: format!("t/{tenant}/s/{store}/eccmodels/M"),
        reason: "because".to_owned(),
        operator_subject: "ada@acme.example".to_owned(),
        accepted_at: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }),
        sla_timestamp: Some(prost_types::Timestamp { seconds: 1_700_014_400, nanos: 0 }),
        finished_at: None,
        state: state.into(),
        expansion_complete: true,
        queues: vec![
            cqs::QueueCounts {
                queue_name: "ecc-image-render-service".to_owned(),
                enqueued: 10,
                done: 9 - failed,
                unchanged: 4,
                failed,
                coalesced: 1,
                parents_enqueued: 1,
                parents_done: 1,
                ..cqs::QueueCounts::default()
            },
            cqs::QueueCounts {
                queue_name: "hardware-exporter".to_owned(),
                enqueued: 5,
                done: 3,
                unchanged: 1,
                waiting: 1,
                leased: 1,
                ..cqs::QueueCounts::default()
            },
        ],
        failures: (0..failed)
            .map(|_| cqs::FailureGroup {
                queue_name: "ecc-image-render-service".to_owned(),
                cause: "price does not fit".to_owned(),
                count: 1,
                sample_urn: format!("t/{tenant}/s/{store}/ecclinks/E1"),
                retried: 0,
                handed_over: 0,
            })
            .collect(),
        items_enqueued: 1,
        ..cqs::Operation::default()
    }
}
