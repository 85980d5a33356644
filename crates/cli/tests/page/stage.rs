//! A cluster of real processes, its server, and a browser that looks at it.

use std::net::{Ipv4Addr, TcpStream};
use std::process::Stdio;

use incumbent::{Node, Serving, clock, family};
use incumbent_proving::browser::Browser;
use incumbent_proving::server::free_port;
use serde_json::Value;

use crate::common::runs::{Run, pause, until};
use crate::common::{PATIENCE, TTL, Trial};

/// What the tests look at.
pub(crate) struct Stage {
    pub(crate) trial: Trial,
    pub(crate) browser: Browser,
    pub(crate) port: u16,
    pub(crate) server: Run,
}

impl Stage {
    /// A store, a server with these arguments, and a window.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self::sized(arguments, 1280, 900)
    }

    pub(crate) fn sized(arguments: &[&str], width: u32, height: u32) -> Self {
        let trial = Trial::with_store();
        let port = free_port();
        let server = serve(&trial, port, arguments);
        let browser = Browser::start(width, height);
        Self { trial, browser, port, server }
    }

    /// Starts the server again where it was.
    pub(crate) fn serve_again(&mut self) {
        self.server = serve(&self.trial, self.port, &[]);
    }

    /// Opens a view of the page, by its address within it. Between views nothing is loaded anew.
    pub(crate) fn open(&self, route: &str) {
        self.open_at(&format!("#/{route}"));
    }

    /// The same for an address that may name a cluster.
    pub(crate) fn open_at(&self, address: &str) {
        self.browser.open(&format!("{}{address}", self.base()));
        self.until(
            "the page has heard of the cluster",
            "return !document.querySelector('#status.wait')",
        );
    }

    pub(crate) fn base(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Waits until a script in the page returns something that counts as true.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, script: &str) -> Value {
        let deadline = clock::now() + PATIENCE;
        loop {
            let found = self.browser.script(script);
            let good = match &found {
                Value::Null => false,
                Value::Bool(good) => *good,
                Value::Object(fields) => !fields.contains_key("error"),
                Value::Number(_) | Value::String(_) | Value::Array(_) => true,
            };
            if good {
                return found;
            }
            let text = self.browser.text("body");
            assert!(clock::now() < deadline, "{what}: {found} in\n{text}");
            pause(std::time::Duration::from_millis(30));
        }
    }

    /// Waits until the text of what matches contains this.
    #[track_caller]
    pub(crate) fn shows(&self, selector: &str, text: &str) {
        let (place, wanted) = (Value::from(selector), Value::from(text));
        let script = format!(
            "return document.querySelector({place})?.innerText.includes({wanted}) ?? false"
        );
        self.until(&format!("{selector} shows {text:?}"), &script);
    }

    /// Presses something once it is there.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        let place = Value::from(selector);
        let script = format!(
            "const one = document.querySelector({place}); return one !== null && !one.disabled"
        );
        self.until(&format!("{selector} can be pressed"), &script);
        self.browser.click(selector);
    }

    /// Does an action of what is shown in detail: to this node, if it needs one.
    #[track_caller]
    pub(crate) fn act(&self, act: &str, to: Option<&str>) {
        self.click(&format!("[data-act={act}]"));
        if let Some(to) = to {
            self.click("dialog input[list]");
            self.browser.press(to);
        }
        self.click("dialog [data-confirm]");
        self.until("the dialog is gone", "return document.querySelector('dialog') === null");
    }

    /// A command of the command line that prints JSON.
    pub(crate) fn asked(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        // Some say by their exit code what they also say in the document.
        self.trial.run(&all).json()
    }

    /// Waits until the command line says so too: the page is not the judge of itself.
    #[track_caller]
    pub(crate) fn until_told(
        &self,
        what: &str,
        arguments: &[&str],
        holds: impl Fn(&Value) -> bool,
    ) {
        until(what, || holds(&self.asked(arguments)).then_some(()));
    }

    /// No error was written, and nobody else was asked for anything.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        let errors: Vec<Value> = self.browser.log("browser");
        assert!(errors.is_empty(), "{errors:#?}");
        let (own, mut requests) = (self.base(), 0);
        for entry in self.browser.log("performance") {
            let message = entry.get("message").and_then(Value::as_str).unwrap_or_default();
            let message: Value = serde_json::from_str(message).unwrap_or_default();
            if message.pointer("/message/method") != Some(&"Network.requestWillBeSent".into()) {
                continue;
            }
            let url = message.pointer("/message/params/request/url").and_then(Value::as_str);
            let url = url.unwrap_or_default();
            // What the browser shows before it opens anything.
            if url.starts_with("chrome") || url.starts_with("data:") {
                continue;
            }
            requests += 1;
            assert!(url.starts_with(&own), "{url}");
        }
        assert!(requests > 10, "the log has only {requests} requests");
    }
}

fn serve(trial: &Trial, port: u16, arguments: &[&str]) -> Run {
    let mut command = trial.command(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    command.args(arguments).stdout(Stdio::null()).env("INCUMBENT_NODE", "page-server");
    let server = Run::start(command);
    until("the server listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
    server
}

/// A process that holds a lease for as long as it lives.
pub(crate) fn holder(trial: &Trial, lease: &str, name: &str) -> Run {
    let mut command = trial.command(&["run", "--lease", lease, "--", "sleep", "600"]);
    command.env("INCUMBENT_NODE", name).env("INCUMBENT_TTL", format!("{}s", TTL.as_secs()));
    Run::start(command)
}

/// A node inside the test that runs some duties.
pub(crate) fn worker(trial: &Trial, name: &str, duties: &[&str]) -> (Node, Serving) {
    let node = trial.node(name);
    let duties = duties.iter().map(|duty| (*duty).to_owned());
    let work = family("projection").duties(duties).run(|duty| async move {
        duty.token().cancelled().await;
        Ok(())
    });
    let _runtime = trial.runtime.enter();
    let serving = node.serve(work).expect("serves");
    (node, serving)
}
