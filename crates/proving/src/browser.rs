//! A browser that a test steers: headless Chromium behind chromedriver, by the WebDriver protocol.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Server;
use crate::server::{chromedriver, find};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key under which WebDriver names elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys as WebDriver writes them.
pub mod key {
    /// Tab.
    pub const TAB: &str = "\u{e004}";
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// Escape.
    pub const ESCAPE: &str = "\u{e00c}";
    /// To the right.
    pub const RIGHT: &str = "\u{e014}";
    /// Downwards.
    pub const DOWN: &str = "\u{e015}";
}

/// A window of a browser. It ends when it is dropped.
pub struct Browser {
    driver: Server,
    session: String,
}

impl Browser {
    /// Starts one with a window of this size.
    ///
    /// # Panics
    ///
    /// If Chromium or chromedriver isn't installed, or doesn't start.
    #[must_use]
    pub fn start(width: u32, height: u32) -> Self {
        let driver = chromedriver::start();
        let program = find("chromium").expect("chromium: install the package chromium");
        let data = driver.path().join("profile");
        let arguments = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            format!("--user-data-dir={}", data.display()),
            format!("--window-size={width},{height}"),
        ]);
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "binary": program, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        }}});
        let answer = ask(driver.port(), "POST", "/session", Some(&wanted));
        let session = answer.get("sessionId").and_then(Value::as_str);
        let session = session.unwrap_or_else(|| panic!("no session: {answer}")).to_owned();
        let browser = Self { driver, session };
        // The size of the page itself, without what is around it.
        browser.protocol(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700 }),
        );
        browser
    }

    /// Asks the driver about this window, and returns the `value` of its answer.
    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let path = format!("/session/{}{path}", self.session);
        ask(self.driver.port(), method, &path, body)
    }

    /// Sends a command of the browser's own protocol.
    pub fn protocol(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.call("POST", "/goog/cdp/execute", Some(&body))
    }

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.call("POST", "/url", Some(&json!({ "url": url })));
    }

    /// Runs a function's body in the page, and returns what it does.
    pub fn script(&self, body: &str) -> Value {
        self.call("POST", "/execute/sync", Some(&json!({ "script": body, "args": [] })))
    }

    /// The text of the first element that matches, as it is shown; empty if there is none.
    #[must_use]
    pub fn text(&self, selector: &str) -> String {
        let found = self.script(&format!(
            "return document.querySelector({})?.innerText ?? ''",
            Value::from(selector)
        ));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// How many elements match.
    #[must_use]
    pub fn count(&self, selector: &str) -> u64 {
        let found = self
            .script(&format!("return document.querySelectorAll({}).length", Value::from(selector)));
        found.as_u64().unwrap_or_default()
    }

    /// Presses the first element that matches, with the mouse.
    ///
    /// # Panics
    ///
    /// If there is none, or it can't be reached.
    pub fn click(&self, selector: &str) {
        let wanted = json!({ "using": "css selector", "value": selector });
        let mut clicked = Value::Null;
        // What was found may be another element by the time that it is pressed.
        for _ in 0..3 {
            let found = self.call("POST", "/element", Some(&wanted));
            let id = found.get(ELEMENT).and_then(Value::as_str);
            let id = id.unwrap_or_else(|| panic!("{selector}: {found}"));
            clicked = self.call("POST", &format!("/element/{id}/click"), Some(&json!({})));
            if clicked.get("error") != Some(&"stale element reference".into()) {
                break;
            }
        }
        assert!(clicked.is_null(), "{selector} can't be pressed: {clicked}");
    }

    /// Types, into whatever has the focus.
    pub fn press(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
            })
            .collect();
        let body = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] });
        self.call("POST", "/actions", Some(&body));
    }

    /// What was written to a log since it was last asked for: `browser` or `performance`.
    #[must_use]
    pub fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.call("POST", "/se/log", Some(&json!({ "type": kind })));
        entries.as_array().cloned().unwrap_or_default()
    }

    /// A picture of the window.
    #[must_use]
    pub fn picture(&self) -> String {
        self.call("GET", "/screenshot", None).as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.call("DELETE", "", None);
    }
}

/// One request to the driver. Errors are part of what is returned: whoever asked says what it means.
fn ask(port: u16, method: &str, path: &str, body: Option<&Value>) -> Value {
    let exchange = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        read(&mut stream)
    };
    let answer = match exchange() {
        Ok(answer) => answer,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    answer.get("value").cloned().unwrap_or_default()
}

/// The body of an answer. The driver keeps connections open, whatever is asked of it.
fn read(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut part = [0; 16 * 1024];
    loop {
        if let Some(end) = all.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(all.get(..end).unwrap_or_default()).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            if all.len() >= end + 4 + length {
                return Ok(all.split_off(end + 4));
            }
        }
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        all.extend_from_slice(part.get(..count).unwrap_or_default());
    }
}
