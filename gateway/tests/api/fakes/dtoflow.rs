//! DTOflow: records and the aliases the gateway asks for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use domain::{DtoType, Urn};
use prost::Message;
use proto::{
    dtoflow::v1::{self as dtoflow, dto_flow_service_server::DtoFlowService},
    records::v1::{EccLink, StoreEsl, StudioLink},
};
use tonic::{Request, Response, Status};

use super::{Fault, Hold, gate, page};

#[derive(Default)]
pub(crate) struct DtoState {
    pub(crate) records: BTreeMap<(DtoType, String), Vec<u8>>,
    /// What was there once: its versions go on.
    deleted: BTreeSet<(DtoType, String)>,
    /// Of labels, newest first.
    pub(crate) history: BTreeMap<String, Vec<dtoflow::HistoryEntry>>,
    /// Types and URNs, in the order they were touched.
    pub(crate) touched: Vec<(String, String)>,
    pub(crate) fault: Option<Fault>,
    /// How many `TouchDto` calls may still succeed.
    pub(crate) touch_calls_left: Option<u32>,
    pub(crate) touch_hold: Option<Hold>,
}

/// DTOflow: records and the aliases the gateway asks for.
#[derive(Clone, Default)]
pub(crate) struct FakeDtoFlow(Arc<Mutex<DtoState>>);

impl FakeDtoFlow {
    pub(crate) fn state(&self) -> MutexGuard<'_, DtoState> {
        self.0.lock().unwrap()
    }

    pub(crate) fn put(&self, dto_type: DtoType, urn: &str, record: &impl Message) {
        assert!(Urn::record(dto_type, urn).is_ok(), "{urn}");
        self.state().records.insert((dto_type, urn.to_owned()), record.encode_to_vec());
    }

    pub(crate) fn delete(&self, dto_type: DtoType, urn: &str) {
        let mut state = self.state();
        let key = (dto_type, urn.to_owned());
        assert!(state.records.remove(&key).is_some(), "{urn} was there");
        state.deleted.insert(key);
    }

    fn open<T>(&self, request: &Request<T>, rpc: &str) -> Result<MutexGuard<'_, DtoState>, Status> {
        gate(request, &format!("dtoflow.v1.DtoFlowService/{rpc}"))?;
        let state = self.state();
        match &state.fault {
            Some(fault) => Err(fault.status()),
            None => Ok(state),
        }
    }
}

impl DtoState {
    pub(super) fn below(&self, dto_type: &str, alias: &str, parent: &str) -> Vec<String> {
        let dto_type: DtoType = dto_type.parse().unwrap();
        let of_type = self.records.iter().filter(|((known, _), _)| *known == dto_type);
        match alias {
            "by_store" | "by_tenant" => {
                let prefix = format!("{parent}/");
                of_type.filter(|((_, urn), _)| urn.starts_with(&prefix)).map(|((_, urn), _)| urn.clone()).collect()
            }
            "by_eccmodel" => of_type
                .filter(|((_, urn), payload)| {
                    let link = EccLink::decode(payload.as_slice()).unwrap();
                    let store = urn.split("/ecclinks/").next().unwrap();
                    format!("{store}/eccmodels/{}", link.model_id) == parent
                })
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            "by_accesspoint" => of_type
                .filter(|((_, urn), payload)| {
                    let esl = StoreEsl::decode(payload.as_slice()).unwrap();
                    let store = urn.split("/esls/").next().unwrap();
                    format!("{store}/accesspoints/{}", esl.accesspoint_id) == parent
                })
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            "by_storeesl" => of_type
                .filter(|((_, urn), _)| urn.replace("/eslimages/", "/esls/") == parent)
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            // Under the tenant's parent, and seen from a store.
            "by_design" => of_type
                .filter(|((_, urn), payload)| {
                    let link = StudioLink::decode(payload.as_slice()).unwrap();
                    let store = urn.split("/studiolinks/").next().unwrap();
                    let tenant = store.split("/s/").next().unwrap();
                    [store, tenant].iter().any(|level| format!("{level}/designs/{}", link.design_id) == parent)
                })
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            other => panic!("the gateway does not ask by {other}"),
        }
    }

    pub(super) fn by_store(&self, dto_type: &str, alias: &str, parent: &str) -> BTreeMap<String, i64> {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for urn in self.below(dto_type, alias, parent) {
            *counts.entry(urn.split('/').nth(3).unwrap().to_owned()).or_default() += 1;
        }
        counts
    }
}

#[tonic::async_trait]
impl DtoFlowService for FakeDtoFlow {
    async fn get_many(
        &self,
        request: Request<dtoflow::GetManyRequest>,
    ) -> Result<Response<dtoflow::GetManyResponse>, Status> {
        let state = self.open(&request, "GetMany")?;
        let keys = &request.get_ref().keys;
        assert!(!keys.is_empty() && keys.len() <= 4_096);
        let dtos = keys
            .iter()
            .map(|key| (key, (key.dto_type.parse().unwrap(), key.dto_id.clone())))
            .map(|(key, named)| match state.records.get(&named) {
                None if state.deleted.contains(&named) => dtoflow::Dto { version: 2, ..dtoflow::Dto::default() },
                None => dtoflow::Dto::default(),
                Some(payload) => dtoflow::Dto {
                    exists: true,
                    version: 1,
                    payload: if key.known_version >= 1 { Vec::new().into() } else { payload.clone().into() },
                    updated_at: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }),
                    written_by: "svc:record-import".to_owned(),
                    tracking_id: String::new(),
                },
            })
            .collect();
        Ok(Response::new(dtoflow::GetManyResponse { dtos }))
    }

    async fn list_by_alias(
        &self,
        request: Request<dtoflow::ListByAliasRequest>,
    ) -> Result<Response<dtoflow::ListByAliasResponse>, Status> {
        let state = self.open(&request, "ListByAlias")?;
        let asked = request.get_ref();
        let all = state.below(&asked.dto_type, &asked.alias_name, &asked.parent_ids[0]);
        let (urns, next_page_token) = page(&all, asked.page_size, &asked.page_token)?;
        let entries = urns.into_iter().map(|dto_id| dtoflow::AliasEntry { parent_index: 0, dto_id }).collect();
        Ok(Response::new(dtoflow::ListByAliasResponse { entries, next_page_token }))
    }

    async fn count_by_alias(
        &self,
        request: Request<dtoflow::CountByAliasRequest>,
    ) -> Result<Response<dtoflow::CountByAliasResponse>, Status> {
        let state = self.open(&request, "CountByAlias")?;
        let asked = request.get_ref();
        let tenants: std::collections::BTreeSet<&str> =
            asked.parent_ids.iter().map(|parent| parent.split('/').nth(1).unwrap()).collect();
        assert_eq!(tenants.len(), 1, "all parents of one call are under one tenant");
        let counts = asked
            .parent_ids
            .iter()
            .map(|parent| i64::try_from(state.below(&asked.dto_type, &asked.alias_name, parent).len()).unwrap())
            .collect();
        Ok(Response::new(dtoflow::CountByAliasResponse { counts }))
    }

    async fn list_stores_by_alias(
        &self,
        request: Request<dtoflow::ListStoresByAliasRequest>,
    ) -> Result<Response<dtoflow::ListStoresByAliasResponse>, Status> {
        let state = self.open(&request, "ListStoresByAlias")?;
        let asked = request.get_ref();
        let counts = state.by_store(&asked.dto_type, &asked.alias_name, &asked.parent_id);
        let all: Vec<_> = counts.into_iter().map(|(store_id, count)| dtoflow::StoreCount { store_id, count }).collect();
        let (stores, next_page_token) = page(&all, asked.page_size, &asked.page_token)?;
        Ok(Response::new(dtoflow::ListStoresByAliasResponse { stores, next_page_token }))
    }

    async fn list_history(
        &self,
        request: Request<dtoflow::ListHistoryRequest>,
    ) -> Result<Response<dtoflow::ListHistoryResponse>, Status> {
        let state = self.open(&request, "ListHistory")?;
        let asked = request.get_ref();
        let all = state.history.get(&asked.dto_id).cloned().unwrap_or_default();
        let (entries, next_page_token) = page(&all, asked.page_size, &asked.page_token)?;
        Ok(Response::new(dtoflow::ListHistoryResponse { entries, next_page_token }))
    }

    async fn touch_dto(
        &self,
        request: Request<dtoflow::TouchDtoRequest>,
    ) -> Result<Response<dtoflow::TouchDtoResponse>, Status> {
        let hold = self.state().touch_hold.clone();
        if let Some(hold) = hold {
            hold.pass().await;
        }
        let mut state = self.open(&request, "TouchDto")?;
        if let Some(left) = &mut state.touch_calls_left {
            if *left == 0 {
                return Err(Status::unavailable("went away"));
            }
            *left -= 1;
        }
        let asked = request.into_inner();
        let dto_type: DtoType = asked.dto_type.parse().unwrap();
        let (found, missing): (Vec<_>, Vec<_>) =
            asked.dto_id.into_iter().partition(|urn| state.records.contains_key(&(dto_type, urn.clone())));
        let touched = i32::try_from(found.len()).unwrap();
        state.touched.extend(found.into_iter().map(|urn| (asked.dto_type.clone(), urn)));
        Ok(Response::new(dtoflow::TouchDtoResponse { touched, missing }))
    }

    async fn put_many(
        &self,
        _: Request<dtoflow::PutManyRequest>,
    ) -> Result<Response<dtoflow::WriteManyResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }

    async fn delete_many(
        &self,
        _: Request<dtoflow::DeleteManyRequest>,
    ) -> Result<Response<dtoflow::WriteManyResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }
}
