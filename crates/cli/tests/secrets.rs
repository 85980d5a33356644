//! No password in a URL is printed by any command, nor shown in the list of processes.

mod common;

use std::process::{Command, Stdio};

use common::{Ran, Trial, program};
use incumbent_proving::{SecretUrl, SecretUrls};

/// Commands that name the store, or fail to open it, each in a way of its own.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["status", "--json"],
    &["-v", "leader", "scheduler"],
    &["store", "schema"],
    &["store", "init", "--json"],
    &["evict", "a"],
    &["run", "--lease", "a", "--no-wait", "--", "true"],
];

/// Bounded, so that a store that waits for its server can't hold up the whole list.
fn bounded(arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    let inner = program(arguments);
    command.args(["20"]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn silent(secret: &SecretUrl, ran: &Ran) {
    secret.is_not_in(&ran.stdout);
    secret.is_not_in(&ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}: {ran:#?}", secret.url);
}

#[test]
fn o30_no_command_prints_a_password_of_any_form() {
    let trial = Trial::new();
    for (index, secret) in SecretUrls::new(32).take(400).enumerate() {
        let command = COMMANDS[index % COMMANDS.len()];
        let url = secret.url.as_str();
        let mut words = command.to_vec();
        let environment = match index % 3 {
            // By the flag, which is taken away from the list of processes.
            0 => {
                words.splice(0..0, ["--store", url]);
                None
            }
            1 => Some(url),
            // As a word that may or may not be expected there.
            _ => {
                let end = words.iter().position(|it| *it == "--").unwrap_or(words.len());
                words.insert(end, url);
                None
            }
        };
        let mut command = bounded(&words);
        command.current_dir(trial.path()).env("XDG_STATE_HOME", trial.path());
        command.envs(environment.map(|url| ("INCUMBENT_STORE", url)));
        silent(&secret, &Ran::of(command));
    }
}

#[test]
fn o30_a_url_in_a_file_or_a_mistyped_flag_is_not_printed() {
    let trial = Trial::new();
    let file = trial.path().join("incumbent.toml");
    for (index, secret) in SecretUrls::new(33).take(60).enumerate() {
        let url = secret.url.as_str();
        let joined = format!("--stroe={url}");
        let words: &[&str] = match index % 4 {
            0 => {
                let quoted = serde_json::to_string(url).unwrap();
                std::fs::write(&file, format!("store = {quoted}\n")).unwrap();
                &["--config", "incumbent.toml", "status"]
            }
            1 => {
                std::fs::write(&file, format!("store = {url}\n")).unwrap();
                &["--config", "incumbent.toml", "status"]
            }
            2 => &["status", &joined],
            _ => &[url, "status"],
        };
        let mut command = bounded(words);
        command.current_dir(trial.path()).env("XDG_STATE_HOME", trial.path());
        silent(&secret, &Ran::of(command));
    }
}

#[test]
fn o30_urls_whose_password_ends_nobody_knows_where_exit_with_64_and_the_remedy() {
    for password in ["hun/ter2", "hun?ter2", "hun#ter2", "hun/ter2@x", "hun?password=ter2"] {
        let url = format!("postgres://me:{password}@127.0.0.1:1/app");
        for words in [&["status"][..], &["status", "--json"], &["doctor", "--quick"]] {
            let mut command = bounded(words);
            command.env("INCUMBENT_STORE", &url);
            let ran = Ran::of(command);
            assert!(!format!("{ran:?}").contains("ter2"), "{url}: {ran:#?}");
            assert_eq!(ran.code, 64, "{url}: {ran:#?}");
            ran.complains(&["INCUMBENT_STORE", "%2F", "%3F"]);
        }
    }
}

#[test]
fn a_command_gets_the_url_without_what_is_secret_in_it() {
    let trial = Trial::with_store();
    let script = "echo $INCUMBENT_STORE";
    let words = ["run", "--lease", "a", "--shell", "--", script];
    let ran = trial.run(&words).succeeds();
    assert_eq!(ran.stdout.trim(), trial.url());
}

#[cfg(target_os = "linux")]
#[test]
fn o30_a_password_on_the_command_line_leaves_the_list_of_processes() {
    use std::time::Duration;
    let trial = Trial::new();
    // Something that takes connections and never answers, so that the program waits.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me:hunter2@{}/app", listener.local_addr().unwrap());
    for words in [
        vec!["--store".to_owned(), url.clone(), "status".to_owned()],
        vec![format!("--store={url}"), "status".to_owned()],
        vec!["store".to_owned(), "init".to_owned(), url.clone()],
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = program(&words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let arguments = format!("/proc/{}/cmdline", child.id());
        let mut seen = String::new();
        trial.runtime.block_on(async {
            let hidden = async {
                loop {
                    seen =
                        String::from_utf8_lossy(&std::fs::read(&arguments).unwrap()).into_owned();
                    if !seen.contains("hunter2") && seen.contains("incumbent") {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            // Too late or not is judged below.
            let _ = tokio::time::timeout(Duration::from_secs(20), hidden).await;
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!seen.contains("hunter2") && seen.contains("incumbent"), "{seen:?}");
    }
}
