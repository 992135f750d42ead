//! A headless Chromium, driven by the `WebDriver` protocol.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{process::Program, wait::until};

/// Where Debian installs the driver.
const CHROMEDRIVER: &str = "/usr/bin/chromedriver";
/// Longest wait for the page to show something.
const PAGE_LIMIT: Duration = Duration::from_secs(20);
/// The key under which `WebDriver` gives an element's reference.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// One browser with one page.
#[derive(Debug)]
pub struct Browser {
    client: reqwest::Client,
    session: String,
    _driver: Program,
    _profile: TempDir,
}

impl Browser {
    /// Starts driver and browser with a fresh profile.
    pub async fn start() -> Self {
        assert!(
            Path::new(CHROMEDRIVER).is_file(),
            "{CHROMEDRIVER} is missing: install the Debian packages chromium and chromium-driver"
        );
        let profile = tempfile::tempdir().expect("a folder for the profile");
        let mut command = Command::new(CHROMEDRIVER);
        command.arg("--port=0");
        let mut driver = Program::start("chromedriver", command, profile.path());
        let port = driver
            .shows("to print its port", PAGE_LIMIT, |text| {
                let (_, after) = text.split_once("started successfully on port ")?;
                after.split_once('.')?.0.parse::<u16>().ok()
            })
            .await;
        let client = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let mut arguments: Vec<String> = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1400,2000",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--user-data-dir={}", profile.path().join("profile").display()));
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
        }}});
        let base = format!("http://127.0.0.1:{port}/session");
        let answer = post(&client, &base, &capabilities).await.unwrap_or_else(|error| panic!("a session: {error}"));
        let id = answer["sessionId"].as_str().expect("a session id");
        Self { client, session: format!("{base}/{id}"), _driver: driver, _profile: profile }
    }

    async fn call(&self, path: &str, body: &Value) -> Result<Value, String> {
        post(&self.client, &format!("{}/{path}", self.session), body).await
    }

    /// Opens an address.
    pub async fn open(&self, address: &str) {
        self.call("url", &json!({"url": address})).await.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    async fn find(&self, css: &str) -> Result<String, String> {
        let found = self.call("element", &json!({"using": "css selector", "value": css})).await?;
        found[ELEMENT].as_str().map(str::to_owned).ok_or_else(|| format!("no reference in {found}"))
    }

    /// Clicks what the selector finds, as soon as it can be clicked.
    pub async fn click(&self, css: &str) {
        until(&format!("click {css}"), PAGE_LIMIT, || async {
            let element = self.find(css).await?;
            self.call(&format!("element/{element}/click"), &json!({})).await
        })
        .await;
    }

    /// Replaces the text of an input as a person would: clears it, types.
    pub async fn type_into(&self, css: &str, text: &str) {
        until(&format!("type into {css}"), PAGE_LIMIT, || async {
            let element = self.find(css).await?;
            self.call(&format!("element/{element}/clear"), &json!({})).await?;
            self.call(&format!("element/{element}/value"), &json!({"text": text})).await
        })
        .await;
    }

    /// The value of a form field, as soon as there is one.
    pub async fn value_of(&self, css: &str) -> String {
        until(&format!("value of {css}"), PAGE_LIMIT, || async {
            let script = "const e = document.querySelector(arguments[0]); return e && e.value || null;";
            let value = self.run(script, json!([css])).await?;
            value.as_str().map(str::to_owned).ok_or_else(|| "empty".to_owned())
        })
        .await
    }

    /// Replaces the text of a controlled text area through the browser's own setter, so that the page's framework sees
    /// an input event; typing a JSON document key by key would fight with auto-indent.
    pub async fn set_value(&self, css: &str, text: &str) {
        let script = "const e = document.querySelector(arguments[0]);\
            Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), 'value').set.call(e, arguments[1]);\
            e.dispatchEvent(new Event('input', {bubbles: true}));\
            e.dispatchEvent(new Event('change', {bubbles: true})); return true;";
        self.run(script, json!([css, text])).await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Waits for another window than the present one and goes there; gives the present one's handle.
    pub async fn switch_to_new_window(&self) -> String {
        let present = self.window().await;
        let new = until("a new window", PAGE_LIMIT, || async {
            let handles = get(&self.client, &format!("{}/window/handles", self.session)).await?;
            let handles = handles.as_array().cloned().unwrap_or_default();
            let mut others = handles.iter().filter_map(Value::as_str).filter(|handle| *handle != present);
            others.next().map(str::to_owned).ok_or_else(|| "only one".to_owned())
        })
        .await;
        self.switch_back(&new).await;
        present
    }

    /// Goes to the window of that handle.
    pub async fn switch_back(&self, handle: &str) {
        self.call("window", &json!({"handle": handle})).await.unwrap_or_else(|error| panic!("{handle}: {error}"));
    }

    async fn window(&self) -> String {
        let handle = get(&self.client, &format!("{}/window", self.session)).await;
        handle.ok().and_then(|handle| handle.as_str().map(str::to_owned)).expect("a window")
    }

    /// Runs a script in the page.
    pub async fn run(&self, script: &str, arguments: Value) -> Result<Value, String> {
        self.call("execute/sync", &json!({"script": script, "args": arguments})).await
    }

    /// Waits until the text of what the selector finds satisfies `look`.
    pub async fn text_with<T>(&self, css: &str, look: impl Fn(&str) -> Option<T>) -> T {
        until(&format!("text of {css}"), PAGE_LIMIT, || async {
            let script = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join('\\n');";
            let text = self.run(script, json!([css])).await?;
            let text = text.as_str().unwrap_or_default();
            look(text).ok_or_else(|| format!("{text:?}"))
        })
        .await
    }

    /// Ends the session and with it the browser.
    pub async fn close(self) {
        let ended = self.client.delete(&self.session).send().await;
        assert!(ended.is_ok(), "the session ends");
    }
}

async fn get(client: &reqwest::Client, address: &str) -> Result<Value, String> {
    let answer = client.get(address).send().await.map_err(|error| error.to_string())?;
    let text = answer.text().await.map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(answer["value"].clone())
}

async fn post(client: &reqwest::Client, address: &str, body: &Value) -> Result<Value, String> {
    let response = client
        .post(address)
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await
        .map_err(|error| error.to_string())?;
    let failed = !response.status().is_success();
    let text = response.text().await.map_err(|error| error.to_string())?;
    let mut answer: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    if failed { Err(text) } else { Ok(answer["value"].take()) }
}
