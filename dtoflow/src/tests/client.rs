//! The gRPC client as a face of the store: the same cases over the wire, behind the same layer as a network server.

use std::{collections::BTreeMap, sync::Arc};

use cqs::{Wakeups, announce::WriteAuthority};
use daemon::{
    identity::{Registry, ServiceCredentials, ServiceKey, Verifier},
    serve,
};
use domain::{Clock, DtoType, Parent, Refusal, ServiceName, TenantId, Timestamp, Urn};
use proto::{
    DtoFlowClient, Transport, dtoflow::v1 as wire, dtoflow_client, refusal_from_status, timestamp_from_wire,
    timestamp_to_wire,
};
use tonic::{Status, service::Routes};

use super::world::World;
use crate::{
    DtoFlowServer, DtoFlowServerParts, DtoStore, StoreError,
    alias::AliasRules,
    history::{HistoryAsk, HistoryCause, HistoryEntry, HistoryEvent},
    model::{
        AliasFound, AliasListAsk, AliasLook, Content, Page, ReadBatch, Reindexed, StoreCount, StoreListAsk, Stored,
        Touch, TouchDone, WriteBatch, WriteDone, WriteResult, WriteStatus,
    },
    store::{Result, sealed::Reindex},
};

const SERVICES: [ServiceName; 5] = [
    ServiceName::EccImageRender,
    ServiceName::EslImageMerger,
    ServiceName::HardwareExporter,
    ServiceName::RecordImport,
    ServiceName::OperatorGateway,
];

/// The server's transport without credentials, and each service's own.
pub(super) fn serve_world(world: &World) -> (Transport, BTreeMap<ServiceName, Transport>) {
    let clock: Arc<dyn Clock> = world.clock.clone();
    let keys: Vec<_> = SERVICES.iter().map(|service| (*service, ServiceKey::generate().unwrap())).collect();
    let public: Vec<_> = keys.iter().map(|(service, key)| (*service, key.public().clone())).collect();
    let registry = Registry::parse(&Registry::standard_document(&public).unwrap()).unwrap();
    let parts = DtoFlowServerParts { clock: Arc::clone(&clock), wakeups: Wakeups::default() };
    let server = DtoFlowServer::new(Arc::clone(&world.store), parts);
    let routes = Routes::new(server.into_service());
    let transport = serve::in_process(routes, Verifier::new(Arc::new(registry), Arc::clone(&clock)));
    let credentialed = keys
        .into_iter()
        .map(|(service, key)| {
            (service, ServiceCredentials::new(service, key, Arc::clone(&clock)).attach(transport.clone()))
        })
        .collect();
    (transport, credentialed)
}

/// The world with its store behind the wire.
pub(super) fn over_grpc(world: World) -> World {
    let (_, transports) = serve_world(&world);
    let behind = Arc::clone(&world.store);
    World { store: Arc::new(ClientStore { transports, behind }), ..world }
}

struct ClientStore {
    transports: BTreeMap<ServiceName, Transport>,
    /// For what is not asked over the wire.
    behind: Arc<dyn DtoStore>,
}

impl ClientStore {
    fn of(&self, service: ServiceName) -> DtoFlowClient {
        dtoflow_client(self.transports[&service].clone())
    }

    fn gateway(&self) -> DtoFlowClient {
        self.of(ServiceName::OperatorGateway)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "given to map_err")]
fn refused(status: Status) -> StoreError {
    StoreError::Refused(refusal_from_status(&status))
}

fn parent_text(look: &AliasLook, parent: &Parent) -> String {
    let mut text = match &parent.store {
        Some(store) => format!("t/{}/s/{store}", look.tenant),
        None => format!("t/{}", look.tenant),
    };
    if !parent.base.is_empty() {
        text.push('/');
        text.push_str(&parent.base);
    }
    text
}

fn lease(authority: &WriteAuthority) -> Option<wire::WriteLease> {
    match authority {
        WriteAuthority::Lease(lease) => {
            Some(wire::WriteLease { queue_name: lease.queue.to_string(), generation: lease.generation })
        }
        WriteAuthority::Unleased => None,
    }
}

#[tonic::async_trait]
impl DtoStore for ClientStore {
    async fn record_write(&self, batch: WriteBatch, _: Timestamp) -> Result<WriteDone> {
        let mut client = self.of(batch.writer.0);
        let lease = lease(&batch.authority);
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for change in batch.changes {
            let (dto_type, dto_id) = (change.dto_type.to_string(), change.urn.to_string());
            let inputs = change
                .inputs
                .iter()
                .map(|input| wire::InputVersion {
                    dto_type: type_of(&input.urn).to_string(),
                    dto_id: input.urn.to_string(),
                    version: input.version,
                })
                .collect();
            let sla_timestamp = Some(timestamp_to_wire(change.sla));
            let tracking_id = change.tracking_id.map(|id| id.to_string()).unwrap_or_default();
            match change.content {
                Content::Put { payload, .. } => {
                    puts.push(wire::PutItem { dto_type, dto_id, payload, inputs, sla_timestamp, tracking_id });
                }
                Content::Delete => {
                    deletes.push(wire::DeleteItem { dto_type, dto_id, inputs, sla_timestamp, tracking_id });
                }
            }
        }
        assert!(puts.is_empty() || deletes.is_empty(), "the wire has a verb for each");
        let answer = if deletes.is_empty() {
            client.put_many(wire::PutManyRequest { items: puts, lease }).await
        } else {
            client.delete_many(wire::DeleteManyRequest { items: deletes, lease }).await
        };
        let results = answer.map_err(refused)?.into_inner().results;
        let results = results
            .iter()
            .map(|result| WriteResult {
                status: match result.status() {
                    wire::WriteStatus::Written => WriteStatus::Written,
                    wire::WriteStatus::Unchanged => WriteStatus::Unchanged,
                    wire::WriteStatus::InputChanged => WriteStatus::InputChanged,
                    wire::WriteStatus::Unspecified => unreachable!("every result has a status"),
                },
                version: result.version,
            })
            .collect();
        Ok(WriteDone { results, ..WriteDone::default() })
    }

    async fn record_touch(&self, touch: Touch, _: Timestamp) -> Result<TouchDone> {
        let request = wire::TouchDtoRequest {
            dto_type: touch.dto_type.to_string(),
            dto_id: touch.urns.iter().map(ToString::to_string).collect(),
            reason: "an operator asked".to_owned(),
            tracking_id: touch.tracking_id.to_string(),
            sla_timestamp: Some(timestamp_to_wire(touch.sla)),
            operator_subject: "ops".to_owned(),
        };
        let answer = self.gateway().touch_dto(request).await.map_err(refused)?.into_inner();
        let touched: Vec<bool> = touch.urns.iter().map(|urn| !answer.missing.contains(&urn.to_string())).collect();
        let count = touched.iter().filter(|touched| **touched).count();
        assert_eq!(usize::try_from(answer.touched), Ok(count));
        Ok(TouchDone { touched, ..TouchDone::default() })
    }

    async fn record_read(&self, batch: ReadBatch) -> Result<Vec<Option<Stored>>> {
        let keys = batch
            .keys
            .iter()
            .map(|key| wire::GetKey {
                dto_type: type_of(&key.urn).to_string(),
                dto_id: key.urn.to_string(),
                known_version: key.known_version,
            })
            .collect();
        let answer = self.gateway().get_many(wire::GetManyRequest { keys }).await.map_err(refused)?.into_inner();
        let stored = |dto: wire::Dto| -> std::result::Result<Option<Stored>, Refusal> {
            if !dto.exists {
                assert_eq!(dto, wire::Dto::default());
                return Ok(None);
            }
            Ok(Some(Stored {
                version: dto.version,
                payload: Some(dto.payload).filter(|payload| !payload.is_empty()),
                updated_at: timestamp_from_wire("updated_at", &dto.updated_at.unwrap())?,
                written_by: dto.written_by.parse().unwrap(),
                tracking_id: Some(dto.tracking_id).filter(|id| !id.is_empty()).map(|id| id.parse().unwrap()),
            }))
        };
        Ok(answer.dtos.into_iter().map(stored).collect::<std::result::Result<_, _>>()?)
    }

    async fn alias_list(&self, ask: AliasListAsk) -> Result<Page<AliasFound>> {
        let request = wire::ListByAliasRequest {
            dto_type: ask.look.dto_type.to_string(),
            alias_name: ask.look.alias.to_string(),
            parent_ids: ask.parents.iter().map(|parent| parent_text(&ask.look, parent)).collect(),
            page_size: i32::try_from(ask.limit).unwrap(),
            page_token: ask.after.map(|after| format!("{}:{}", after.parent, after.id)).unwrap_or_default(),
        };
        let answer = self.gateway().list_by_alias(request).await.map_err(refused)?.into_inner();
        let entries = answer
            .entries
            .iter()
            .map(|entry| {
                let urn = Urn::record(ask.look.dto_type, &entry.dto_id).unwrap();
                let parent = usize::try_from(entry.parent_index).unwrap();
                assert_eq!(urn.store(), ask.parents[parent].store.as_ref());
                AliasFound { parent, id: urn.record_id().unwrap().clone() }
            })
            .collect();
        Ok(Page { entries, more: !answer.next_page_token.is_empty() })
    }

    async fn alias_count(&self, look: AliasLook, parents: Vec<Parent>) -> Result<Vec<i64>> {
        let request = wire::CountByAliasRequest {
            dto_type: look.dto_type.to_string(),
            alias_name: look.alias.to_string(),
            parent_ids: parents.iter().map(|parent| parent_text(&look, parent)).collect(),
        };
        Ok(self.gateway().count_by_alias(request).await.map_err(refused)?.into_inner().counts)
    }

    async fn alias_stores(&self, ask: StoreListAsk) -> Result<Page<StoreCount>> {
        let tenant: TenantId = ask.look.tenant.clone();
        let parent = Parent { tenant, store: None, base: ask.base.clone() };
        let request = wire::ListStoresByAliasRequest {
            dto_type: ask.look.dto_type.to_string(),
            alias_name: ask.look.alias.to_string(),
            parent_id: parent_text(&ask.look, &parent),
            page_size: i32::try_from(ask.limit).unwrap(),
            page_token: ask.after.map(|store| store.to_string()).unwrap_or_default(),
        };
        let answer = self.gateway().list_stores_by_alias(request).await.map_err(refused)?.into_inner();
        let entries = answer
            .stores
            .iter()
            .map(|entry| StoreCount { store: entry.store_id.parse().unwrap(), count: entry.count })
            .collect();
        Ok(Page { entries, more: !answer.next_page_token.is_empty() })
    }

    async fn history_list(&self, ask: HistoryAsk) -> Result<Page<HistoryEntry>> {
        let request = wire::ListHistoryRequest {
            dto_id: Urn::in_store(&ask.tenant, &ask.store, DtoType::StoreEsl, &ask.label).to_string(),
            page_size: i32::try_from(ask.limit).unwrap(),
            page_token: ask.before.map(|before| before.to_string()).unwrap_or_default(),
        };
        let answer = self.gateway().list_history(request).await.map_err(refused)?.into_inner();
        let more = !answer.next_page_token.is_empty();
        // Only the last entry's position goes over the wire, as the place of the next page.
        let mut entries: Vec<HistoryEntry> = answer.entries.iter().map(history_entry).collect();
        if let (true, Some(last)) = (more, entries.last_mut()) {
            last.position = answer.next_page_token.parse().unwrap();
        }
        Ok(Page { entries, more })
    }

    async fn history_prune(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.behind.history_prune(before, limit).await
    }
}

fn history_entry(entry: &wire::HistoryEntry) -> HistoryEntry {
    let digest = |bytes: &[u8]| (!bytes.is_empty()).then(|| bytes.try_into().unwrap());
    HistoryEntry {
        position: 0,
        at: timestamp_from_wire("at", entry.at.as_ref().unwrap()).unwrap(),
        event: match entry.event() {
            wire::HistoryEvent::Picture => HistoryEvent::Picture,
            wire::HistoryEvent::Removed => HistoryEvent::Removed,
            wire::HistoryEvent::Confirmed => HistoryEvent::Confirmed,
            wire::HistoryEvent::Failed => HistoryEvent::Failed,
            wire::HistoryEvent::Lost => HistoryEvent::Lost,
            wire::HistoryEvent::Unspecified => unreachable!("every entry has an event"),
        },
        cause: if entry.of_operation { HistoryCause::Operation } else { HistoryCause::Change },
        written_by: entry.written_by.parse().unwrap(),
        tracking_id: Some(entry.tracking_id.clone()).filter(|id| !id.is_empty()).map(|id| id.parse().unwrap()),
        old_digest: digest(&entry.old_digest),
        new_digest: digest(&entry.new_digest),
        evidence: entry.evidence(),
    }
}

#[tonic::async_trait]
impl Reindex for ClientStore {
    async fn alias_reindex(&self, _: AliasRules, _: usize) -> Result<Reindexed> {
        unreachable!("rules are not given over the wire")
    }
}

fn type_of(urn: &Urn) -> DtoType {
    match urn {
        Urn::TenantRecord(_, collection, _) | Urn::StoreRecord(_, _, collection, _) => collection.dto_type(),
        Urn::Tenant(_) | Urn::Store(_, _) => unreachable!("tests read records only"),
    }
}
