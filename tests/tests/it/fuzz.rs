//! Mutated inputs for everything that parses: a thousand a target here, from a fixed seed; `scripts/fuzz.sh` runs them long.
//!
//! No target may panic, and what is accepted must be what was given. Seeds are the corpus and the product's own files.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use daemon::{
    SystemClock,
    identity::{Registry, ServiceKey},
    tls::SpiffeId,
};
use domain::{IdSource as _, OperatorSubject, Reason, SeededIds, ServiceName, TenantId, TrackingId, Urn};
use gateway::{GatewayConfig, Issuer, OperatorVerifier};
use picture::Picture;
use prost::Message as _;
use proto::{cqs::v1 as cqs, dtoflow::v1 as dtoflow, records::v1 as records};
use render::{EccModel, StudioDesign};
use serde_json::{Value, json};
use tests::{data::Shelf, source::workspace_root, topology::Topology};
use tonic::{Code, Status};

/// Cases of one target when no time is given.
const CASES: u64 = 1_000;
/// Seconds for each target, for long runs.
const SECONDS: &str = "RESHELF_FUZZ_SECONDS";
/// Longest input, in bytes.
const INPUT_MAX_BYTES: usize = 64 * 1024;

/// Pieces that parsers stumble over.
const PIECES: &[&[u8]] = &[
    b"",
    b"\0",
    b"\n",
    b"/",
    b"..",
    b"%00",
    b"\"",
    b"'",
    b"<",
    b">",
    b"&",
    b"]]>",
    b"{",
    b"}",
    b"[[[[[[[[",
    b"]",
    b",",
    b":",
    b"-1",
    b"99999999999999999999",
    b"1e308",
    b"NaN",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u{202e}".as_bytes(),
    "\u{1d54f}".as_bytes(),
    b"\x80\x80\x80\x80\x10",
    b"\x0a\xff\xff\xff\xff\x07",
    b"url(#a)",
    b"href=",
    b"data:",
    b"<use href='#a'/>",
    b"<svg>",
    b"matrix(0 0 0 0 0 0)",
];

fn below(random: &SeededIds, end: usize) -> usize {
    let end = u64::try_from(end.max(1)).expect("a length");
    usize::try_from(random.bits() % end).expect("below a length")
}

/// One to four random changes.
fn mutate(random: &SeededIds, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[below(random, seeds.len())].clone();
    for _ in 0..=below(random, 4) {
        let at = below(random, bytes.len() + 1);
        let until = (at + 1 + below(random, 16)).min(bytes.len());
        match below(random, 6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(random, 8),
            1 if at < until => drop(bytes.drain(at..until)),
            2 => drop(bytes.splice(at..at, PIECES[below(random, PIECES.len())].iter().copied())),
            3 if at < until => {
                let again: Vec<u8> = bytes[at..until].repeat(1 + below(random, 64));
                drop(bytes.splice(at..at, again));
            }
            4 => {
                let other = &seeds[below(random, seeds.len())];
                let from = below(random, other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes.truncate(INPUT_MAX_BYTES);
    bytes
}

/// Runs `target` over mutations of `seeds`; a panic is told with its input.
fn fuzz(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8])) {
    assert!(!seeds.is_empty(), "{name} has seeds");
    let time = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    // Long runs go new ways each time; the one of every day always the same.
    let seed = if time.is_some() { u64::from(std::process::id()) } else { 7 };
    let (random, begun) = (SeededIds::new(seed), Instant::now());
    let mut cases = 0;
    while time.map_or(cases < CASES, |time| begun.elapsed() < time) {
        let input = mutate(&random, seeds);
        let ran = catch_unwind(AssertUnwindSafe(|| target(&input)));
        assert!(ran.is_ok(), "{name} panics on {:?}", input.escape_ascii().to_string());
        cases += 1;
    }
    println!("{name}: {cases} cases");
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Values of `key` of every case of a file of the corpus.
fn corpus(file: &str, key: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(workspace_root().join("tests/corpus").join(file)).expect("the corpus");
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).expect("a case");
        case[key].as_str().expect("a text").as_bytes().to_vec()
    };
    text.lines().map(case).collect()
}

/// Every file with that end below a folder of the workspace.
fn files(folder: &str, end: &str) -> Vec<Vec<u8>> {
    let (mut found, mut todo) = (Vec::new(), vec![workspace_root().join(folder)]);
    while let Some(path) = todo.pop() {
        for entry in fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                todo.push(entry);
            } else if entry.extension().is_some_and(|found| found == end) {
                found.push(fs::read(entry).expect("a file"));
            }
        }
    }
    found.retain(|bytes| bytes.len() <= INPUT_MAX_BYTES);
    found
}

#[test]
fn names() {
    fuzz("names", &corpus("names.jsonl", "text"), |bytes| {
        let name = text(bytes);
        if let Ok(urn) = name.parse::<Urn>() {
            assert_eq!(urn.to_string(), name);
        }
        if let Ok(id) = name.parse::<TrackingId>() {
            assert_eq!(id.as_str(), name);
        }
        let _ = (name.parse::<TenantId>(), name.parse::<Reason>(), name.parse::<OperatorSubject>());
        if let Ok(id) = name.parse::<SpiffeId>() {
            assert_eq!(id.to_string(), name);
        }
    });
}

#[test]
fn tokens() {
    let key = ServiceKey::generate().expect("a key");
    let issuer = Issuer::local(key.public()).expect("an issuer");
    let verifier = OperatorVerifier::new(vec![issuer], Arc::new(SystemClock));
    let claims = gateway::token::OperatorClaims {
        subject: "ada".parse().expect("a subject"),
        scopes: domain::OperatorScope::ALL.to_vec(),
        tenants: vec!["acme".parse().expect("a tenant")],
        stores: None,
        issued_at: domain::Clock::now(&SystemClock),
        lifetime_s: 3_600,
    };
    let good = gateway::token::mint(&key, &claims).expect("a token");
    fuzz("tokens", &[good.clone().into_bytes()], |bytes| {
        let token = text(bytes);
        if verifier.verify(&token).is_ok() {
            assert_eq!(token, good, "no other text than the one signed is accepted");
        }
    });
}

#[test]
fn messages() {
    let hex = |text: Vec<u8>| {
        let digit = |byte: u8| u8::try_from((byte as char).to_digit(16).expect("hex")).expect("a digit");
        text.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect::<Vec<u8>>()
    };
    let seeds: Vec<Vec<u8>> = corpus("messages.jsonl", "bytes").into_iter().map(hex).collect();
    fuzz("messages", &seeds, |bytes| {
        if let Ok(request) = cqs::SelfEnqueueRequest::decode(bytes) {
            for item in &request.items {
                let _ = proto::split_item_from_wire("items[0]", item);
            }
            if let Some(sla) = &request.sla_timestamp {
                let _ = proto::timestamp_from_wire("sla_timestamp", sla);
            }
        }
        let _ = (cqs::CompleteRequest::decode(bytes), cqs::ReEnqueueRequest::decode(bytes));
        let _ = (dtoflow::PutManyRequest::decode(bytes), dtoflow::GetManyRequest::decode(bytes));
        let _ =
            (records::EccLink::decode(bytes), records::StoreItemValues::decode(bytes), records::Design::decode(bytes));
    });
}

#[test]
fn ecc_layouts() {
    let mut seeds = files("app/src/demo", "json");
    seeds.extend(files("render/tests", "json"));
    fuzz("ECC layouts", &seeds, |bytes| drop(EccModel::parse(&text(bytes))));
}

#[test]
fn designs() {
    let seeds = files("render/tests", "svg");
    fuzz("designs", &seeds, |bytes| {
        drop(StudioDesign::parse(&text(bytes), "{\"studio\":1,\"name\":\"fuzz\",\"elements\":{}}"));
    });
}

/// A layout of one picture, whose PNG is the input: what a model may bring along.
#[test]
fn pngs() {
    let seeds = [png::ColorType::Grayscale, png::ColorType::Rgba].map(|color| {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 16, 8);
        encoder.set_color(color);
        let pixels = vec![0x5a; 16 * 8 * color.samples()];
        encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels)).expect("encoded");
        bytes
    });
    let mut read = 0;
    let layout = |bytes: &[u8]| {
        let png = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes);
        let picture = json!({"kind": "picture", "id": "e", "box": [0, 0, 16, 8], "png": png});
        let variant = json!({"width": 16, "height": 8, "elements": [picture]});
        json!({"ecc": 1, "name": "fuzz", "variants": [variant]}).to_string()
    };
    for seed in &seeds {
        read += usize::from(EccModel::parse(&layout(seed)).is_ok());
    }
    assert_eq!(read, seeds.len(), "the seeds are read");
    fuzz("PNG files", &seeds, |bytes| drop(EccModel::parse(&layout(bytes))));
}

/// Page tokens as the platform is shown them: whatever they are, the answer is a page or a refusal.
#[test]
fn cursors() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let topology = runtime.block_on(async {
        let topology = Topology::in_process().await;
        Shelf::write(&topology.doors, "acme", &[("alpha", 3)]).await;
        topology.quiet().await;
        topology
    });
    let (mut cqs, mut flow) =
        (topology.doors.cqs(ServiceName::OperatorGateway), topology.doors.dtoflow(ServiceName::OperatorGateway));
    let links = |page_token: String| dtoflow::ListByAliasRequest {
        dto_type: "ecclink.v1".to_owned(),
        alias_name: "by_store".to_owned(),
        parent_ids: vec!["t/acme/s/store-1".to_owned()],
        page_size: 1,
        page_token,
    };
    let next = runtime.block_on(flow.list_by_alias(links(String::new()))).expect("a page").into_inner().next_page_token;
    assert!(!next.is_empty(), "there is a second page");
    let seeds: Vec<Vec<u8>> =
        [next.as_str(), "00000000000000ff", "1-2", "store-1", ""].iter().map(|text| text.as_bytes().to_vec()).collect();
    let refused = |status: Option<Status>, token: &str| {
        // A right token still leads to an operation that is not there.
        let status = status.filter(|status| !matches!(status.code(), Code::InvalidArgument | Code::NotFound));
        assert!(status.is_none(), "{token:?}: {status:?}");
    };
    let names = || ("acme".to_owned(), "CHG-1".to_owned());
    let cells = std::cell::RefCell::new((&mut cqs, &mut flow));
    fuzz("cursors", &seeds, |bytes| {
        let token = text(bytes).into_owned();
        let (cqs, flow) = &mut *cells.borrow_mut();
        runtime.block_on(async {
            let (page_size, page_token) = (1, token.clone());
            let (tenant_ids, (tenant_id, tracking_id)) = (vec!["acme".to_owned()], names());
            let asked = cqs::ListOperationsRequest {
                tenant_ids: tenant_ids.clone(),
                page_size,
                page_token,
                tracking_ids: Vec::new(),
            };
            refused(cqs.list_operations(asked).await.err(), &token);
            let page_token = token.clone();
            let asked = cqs::ListAuditRequest { tenant_ids, page_size, page_token, ..cqs::ListAuditRequest::default() };
            refused(cqs.list_audit(asked).await.err(), &token);
            let page_token = token.clone();
            let asked = cqs::ListFailuresRequest {
                tenant_id,
                tracking_id,
                page_size,
                page_token,
                ..cqs::ListFailuresRequest::default()
            };
            refused(cqs.list_failures(asked).await.err(), &token);
            refused(flow.list_by_alias(links(token.clone())).await.err(), &token);
            let asked = dtoflow::ListStoresByAliasRequest {
                dto_type: "ecclink.v1".to_owned(),
                alias_name: "by_store".to_owned(),
                parent_id: "t/acme".to_owned(),
                page_size,
                page_token: token.clone(),
            };
            refused(flow.list_stores_by_alias(asked).await.err(), &token);
        });
    });
}

#[test]
fn pictures() {
    let picture = Picture::new(16, 8, picture::Palette::Bw, vec![1; 128]).expect("a picture");
    let (packed, _) = picture.pack_with_digest().expect("packed");
    fuzz("pictures", &[packed], |bytes| {
        if let Ok(picture) = Picture::unpack(bytes) {
            assert!(picture.to_png().is_ok());
        }
    });
}

#[test]
fn imports_and_configurations() {
    let line = br#"{"dto_type":"ecclink.v1","dto_id":"t/T/s/S/ecclinks/E","record":{"item_id":"I","model_id":"M","parameters":{"a":"1"}}}"#;
    fuzz("import", &[line.to_vec()], |bytes| drop(app::records::record_from_json(&text(bytes))));
    let key = ServiceKey::generate().expect("a key");
    let registry = Registry::standard_document(&[(domain::ServiceName::OperatorGateway, key.public().clone())]);
    fuzz("registry", &[registry.expect("a document").into_bytes()], |bytes| drop(Registry::parse(&text(bytes))));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gateway.toml");
    let example = fs::read(workspace_root().join("gateway/gateway.example.toml")).expect("the example");
    fuzz("gateway configuration", &[example], |bytes| {
        fs::write(&path, bytes).expect("written");
        drop(daemon::config::read::<GatewayConfig>(&path));
    });
}
