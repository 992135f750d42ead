//! The operator's page in a real browser: authorise, execute the trigger, read the answer.

use serde_json::{Value, json};
use tests::{
    browser::Browser,
    data::Shelf,
    topology::{OPERATION_LIMIT, Topology},
};

use crate::model_refresh::MODEL_REFRESH;

/// The trigger's example in the document the page is made of.
fn example(document: &Value) -> Value {
    let content = &document["paths"][MODEL_REFRESH]["post"]["requestBody"]["content"]["application/json"];
    let direct = &content["example"];
    let named = content["examples"].as_object().and_then(|examples| examples.values().next());
    let example = named.map_or(direct, |named| &named["value"]);
    if example.is_object() {
        return example.clone();
    }
    let name = content["schema"]["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a named schema");
    let schema = &document["components"]["schemas"][name];
    let example = if schema["example"].is_object() { &schema["example"] } else { &schema["examples"][0] };
    assert!(example.is_object(), "the trigger has no example: {content}");
    example.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_authorises_and_executes_the_trigger() {
    let topology = Topology::in_process().await;
    let anonymous = topology.anonymous();
    let document = anonymous.get_json("/openapi.json").await;
    let mut request = example(&document);
    assert_eq!(request["dry_run"], true, "every trigger's example is a dry run: {request}");
    let text = |request: &Value, key: &str| request[key].as_str().expect("a text").to_owned();
    let (tenant, store, model) = (text(&request, "tenant_id"), text(&request, "store_id"), text(&request, "model_id"));
    Shelf::write_store(&topology.doors, &tenant, &store, &[(model.as_str(), 4)]).await;
    topology.quiet().await;
    let operator = topology.operator(&[tenant.as_str()]);

    let operation = document["paths"][MODEL_REFRESH]["post"].clone();
    let tag = operation["tags"][0].as_str().unwrap_or("default").replace(' ', "_");
    let block = format!("#operations-{tag}-{}", operation["operationId"].as_str().expect("an operation id"));
    let browser = Browser::start().await;
    browser.open(&format!("{}/docs", anonymous.base())).await;

    browser.click(".auth-wrapper .btn.authorize").await;
    browser.type_into(".modal-ux .auth-container input", operator.token().expect("a token")).await;
    browser.click(".modal-ux .auth-btn-wrapper .btn.authorize").await;
    browser.click(".modal-ux .auth-btn-wrapper .btn-done").await;

    browser.click(&format!("{block} .opblock-summary-control")).await;
    // The page is configured to have every operation ready to be tried: there is no button to press before.
    let shown = browser.value_of(&format!("{block} textarea.body-param__text")).await;
    let shown: Value = serde_json::from_str(&shown).expect("the page shows the example as JSON");
    assert_eq!(shown, request, "the page offers the document's example");

    // The example as it stands: a dry run.
    browser.click(&format!("{block} .btn.execute")).await;
    let answer = executed(&browser, &block, 200).await;
    assert_eq!(answer["labels"], 4, "{answer}");
    let tracking_id = text(&request, "tracking_id");
    assert!(topology.operation(&tenant, &tracking_id).await.is_none(), "a dry run reserves nothing");

    // The real run.
    request["dry_run"] = json!(false);
    let pretty = serde_json::to_string_pretty(&request).expect("JSON");
    browser.set_value(&format!("{block} textarea.body-param__text"), &pretty).await;
    browser.click(&format!("{block} .btn.execute")).await;
    let answer = executed(&browser, &block, 202).await;
    assert_eq!(answer["operation"], format!("/v1/tenants/{tenant}/operations/{tracking_id}"), "{answer}");
    topology.finished(&tenant, &tracking_id, OPERATION_LIMIT).await;
    browser.close().await;
}

/// Waits until the page shows an answer of that status, and reads its body.
async fn executed(browser: &Browser, block: &str, status: u16) -> Value {
    let live = format!("{block} .live-responses-table");
    browser
        .text_with(&format!("{live} .response-col_status"), |text| text.contains(&status.to_string()).then_some(()))
        .await;
    browser
        .text_with(&format!("{live} .response-col_description .highlight-code"), |text| {
            let start = text.find('{')?;
            let end = text.rfind('}')?;
            serde_json::from_str(text.get(start..=end)?).ok()
        })
        .await
}
