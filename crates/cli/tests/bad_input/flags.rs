//! Commands and flags that don't exist, stand in the wrong place, or are there twice.

use super::case::{Case, case, refused, taken};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = commands();
    cases.extend(flags());
    cases.extend(running());
    #[cfg(feature = "serve")]
    cases.extend(serving());
    #[cfg(feature = "serve")]
    cases.extend(encrypting());
    cases
}

/// Where to listen, and who may come.
#[cfg(feature = "serve")]
fn serving() -> Vec<Case> {
    let tokens = |text: &str, value: &str, next: &str| {
        refused(&["serve", "--listen", "127.0.0.1:0", "--token-file", "tokens"], value, next)
            .file("tokens", text)
            .by("chmod 600 tokens; exec \"$0\" \"$@\"")
    };
    vec![
        refused(&["serve", "--listen", "localhost:7070"], "'localhost:7070'", "127.0.0.1:7070"),
        refused(&["serve", "--listen", "7070"], "'7070'", "127.0.0.1:7070"),
        refused(&["serve", "--listen", ":7070"], "':7070'", "127.0.0.1:7070"),
        refused(&["serve", "--listen", "example.org:70"], "'example.org:70'", "such as 127.0.0.1"),
        refused(&["serve", "--listen", "127.0.0.1"], "'127.0.0.1'", "such as 127.0.0.1:7070"),
        refused(&["serve", "--listen", ""], "''", "127.0.0.1:7070"),
        refused(&["serve", "--agent-check", "80", "--lease", "a"], "'80'", "127.0.0.1:80"),
        refused(&["serve", "--ttl", "-5s"], "'-5s'", "such as 3s or 500ms"),
        refused(
            &["serve", "--listen", "127.0.0.1:0", "--trust-dir", "/no/such/directory"],
            "/no/such/directory",
            "Name another directory",
        ),
        refused(
            &["serve", "--listen", "127.0.0.1:0", "--trust-dir", "/proc"],
            "/proc",
            "not on tmpfs",
        ),
        refused(
            &["serve", "--token-file", "/nonexistent"],
            "/nonexistent",
            "a line for each token",
        ),
        tokens("operator alice hunter2", "line 1", "openssl rand -hex 16"),
        tokens("operator 0123456789abcdef", "line 1", "operator alice"),
        tokens(
            "operator a 0123456789abcdef\nclient b 0123456789abcdef\n",
            "line 2 has the same token as line 1",
            "a token of its own",
        ),
    ]
}

/// Certificates and keys that are none, don't fit, or come alone.
#[cfg(feature = "serve")]
fn encrypting() -> Vec<Case> {
    let serve = |flags: &[&str], value: &str, next: &str| {
        let words = ["serve", "--listen", "127.0.0.1:0"].iter().chain(flags);
        let words: Vec<&str> = words.copied().collect();
        refused(&words, value, next)
    };
    let directory = tempfile::tempdir().unwrap();
    let issue = |name: &str| {
        let (certificate, key) =
            incumbent_proving::Authority::new().issue(name, directory.path(), name);
        (std::fs::read(certificate).unwrap(), std::fs::read(key).unwrap())
    };
    let ((certificate, key), (_, other)) = (issue("server"), issue("other"));
    let pair = ["--tls-cert", "a.crt", "--tls-key", "a.key"];
    let with = |flags: &[&str], key: &[u8], value: &str, next: &str| {
        serve(&[&pair, flags].concat(), value, next)
            .file("a.crt", certificate.clone())
            .file("a.key", key)
            .by("chmod 600 a.key; exec \"$0\" \"$@\"")
    };
    let roles = |text: &str, value: &str, next: &str| {
        let flags = ["--client-ca", "a.crt", "--certificate-roles", "roles"];
        with(&flags, &key, value, next).file("roles", text)
    };
    let noise = b"-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n";
    let pem = "Name a PEM file";
    vec![
        serve(&["--tls-cert", "a.crt"], "--tls-cert a.crt", "give --tls-key too"),
        serve(&["--tls-key", "a.key"], "--tls-key a.key", "give --tls-cert too"),
        serve(&["--client-ca", "ca.crt"], "--client-ca ca.crt", "give --tls-cert and --tls-key"),
        serve(&["--certificate-roles", "x"], "--certificate-roles x", "give --client-ca too"),
        serve(&["--tls-cert", ""], "--tls-cert", "--help"),
        serve(&pair, "a.crt", pem),
        serve(&pair, "a.crt: there is no certificate in it", pem)
            .file("a.crt", "")
            .file("a.key", "")
            .by("chmod 600 a.key; exec \"$0\" \"$@\""),
        serve(&["--tls-cert", "/dev/zero", "--tls-key", "/dev/zero"], "/dev/zero", pem),
        serve(&["--tls-cert", ".", "--tls-key", "."], "directory", pem),
        serve(&pair, "--tls-key=a.key: others can read it", "chmod o-rwx")
            .file("a.crt", certificate.clone())
            .file("a.key", key.clone())
            .by("chmod 644 a.key; exec \"$0\" \"$@\""),
        with(&[], &other, "a.key is not the key of", "made together"),
        with(&[], b"hunter2", "--tls-key=a.key", pem),
        with(&["--client-ca", "none"], &key, "--client-ca=none", pem),
        with(&["--client-ca", "noise"], &key, "--client-ca=noise", pem).file("noise", noise),
        with(&["--client-ca", "noise"], &key, "--client-ca=noise", pem).file("noise", [0xff; 99]),
        roles("operator alice", "--certificate-roles=roles: line 1", "cn:"),
        roles("king cn:alice", "line 1 has no known role", "operator"),
        roles("", "gives no role", "operator cn:alice"),
        refused(&["serve"], "a.key", "give --tls-cert too").with("INCUMBENT_TLS_KEY", "a.key"),
        refused(&["serve", "--config", "app.toml"], "a.key", "give --tls-cert too")
            .file("app.toml", "[serve]\ntls-key = \"a.key\"\n"),
    ]
}

fn commands() -> Vec<Case> {
    vec![
        refused::<&str>(&[], "requires a subcommand", "--help"),
        refused::<&str>(&[], "", "incumbent demo")
            .without("INCUMBENT_STORE")
            .without("INCUMBENT_CLUSTER")
            .without("INCUMBENT_CONFIG"),
        refused(&["sttus"], "'sttus'", "'status'"),
        refused(&["Status"], "'Status'", "'status'"),
        refused(&["leaders", "a"], "'leaders'", "'leader'"),
        refused(&["status\n"], "'status\u{fffd}'", "'status'"),
        refused(&["status "], "'status '", "'status'"),
        refused(&["nonsense"], "'nonsense'", "--help"),
        refused(&["a\u{1b}[2Jb\u{202e}c"], "a\u{fffd}[2Jb<U+202E>c", "--help"),
        refused(&["-"], "'-'", "--help"),
        refused(&["--"], "requires a subcommand", "status"),
        refused(&["--", "status"], "'status'", "remove the '--'"),
        refused(&[""], "''", "a variable is not set"),
        refused(&["  "], "'  '", "a variable is not set"),
        refused(&["status", "status"], "'status'", "Usage:"),
        refused(&["status", "billing"], "'billing'", "Usage:"),
        refused(&["help", "nothing"], "'nothing'", "Usage:"),
        refused(&["store"], "requires a subcommand", "check, schema, init"),
        refused(&["store", "chek"], "'chek'", "'check'"),
        refused(&["store", "status"], "'status'", "Usage:"),
        refused(&["rollout"], "requires a subcommand", "promote"),
        refused(&["rollout", "promte"], "'promte'", "'promote'"),
        refused(&["promote", "projection"], "'promote'", "--help"),
        refused(&["completions"], "<SHELL>", "Usage:"),
        refused(&["completions", "sh"], "'sh'", "bash, elvish, fish, powershell, zsh"),
        refused(&["completions", "bash", "zsh"], "'zsh'", "Usage:"),
        refused(&["demo-node"], "--parent", "Usage:"),
        refused(&["doctor-part"], "requires a subcommand", "Usage:"),
        refused(&["http://me:hunter2@db", "status"], "http://", "--help"),
    ]
}

fn flags() -> Vec<Case> {
    let long = format!("--{}", "x".repeat(10_000));
    vec![
        refused(&["--store"], "--store <URL>", "--help"),
        refused(&["status", "--store"], "--store <URL>", "--help"),
        refused(&["status", "--stroe", "x"], "'--stroe'", "'--store'"),
        refused(&["status", "--stroe=postgres://me:hunter2@db"], "'--stroe'", "'--store'"),
        refused(&["status", "-store", "x"], "'-s'", "Usage:"),
        refused(&["status", "—-json"], "'—-json'", "Usage:"),
        refused(&["status", "--json", "--json"], "--json", "cannot be used multiple times"),
        refused(&["status", "--json=true"], "'true'", "Usage:"),
        refused(&["status", "--JSON"], "'--JSON'", "Usage:"),
        refused(&["status", "--cluster", "a", "--cluster", "b"], "--cluster", "multiple times"),
        refused(&["status", "--config", "a", "--config=b"], "--config", "multiple times"),
        refused(&["status", "--ttl", "3s"], "'--ttl'", "Usage:"),
        refused(&["status", "--lease", "a"], "'--lease'", "Usage:"),
        refused(&["leader", "a", "--to", "b"], "'--to'", "Usage:"),
        refused(&["duties", "--not-activ"], "'--not-activ'", "'--not-active'"),
        refused(&["plan", "--apply"], "'--apply'", "Usage:"),
        refused(&["freeze", "--off"], "'--off'", "Usage:"),
        refused(&["doctor", "--fast"], "'--fast'", "Usage:"),
        refused(&["-x", "status"], "'-x'", "Usage:"),
        refused(&["-v", "-q", "status"], "--quiet", "cannot be used with"),
        refused(&["status", "--verbose=2"], "'2'", "Usage:"),
        refused(&["status", "--a\u{1b}]0;x\u{7}b\u{2067}"], "<U+2067>", "Usage:"),
        refused(&["status", &long], "xxxxxxxx", "Usage:"),
        refused(&["--store", "--", "status"], "'status'", "remove the '--'"),
        refused(&["status", "&&", "echo"], "'&&'", "Usage:"),
        refused(&["status", "|", "jq"], "'|'", "Usage:"),
        taken(&["-vvvvvvvvvvvv", "status"]),
        taken(&["--cluster", "a", "status", "--cluster", "b"]),
        taken(&["--version", "status"]),
        taken(&["run", "--help", "x"]),
    ]
}

fn running() -> Vec<Case> {
    let run = |flags: &[&str]| {
        let words = ["run"].iter().chain(flags).chain(&["--", "true"]);
        words.map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    let after = "go after --";
    vec![
        refused(&["run", "--lease", "a", "true"], "'true'", after),
        refused(&["run", "--lease", "a", "sh", "-c", "true"], "'sh'", after),
        refused(&["run", "true"], "'true'", after),
        refused(&["run", "--lease", "a"], "<COMMAND>", after),
        refused(&["run", "--lease", "a", "--"], "<COMMAND>", "Usage:"),
        refused(&run(&[]), "--lease <NAME>", "Usage:"),
        refused(&run(&["a"]), "'a'", "Usage:"),
        refused(&["run", "--", "--lease", "a", "true"], "--lease <NAME>", "Usage:"),
        refused(&["run", "--lease", "--", "true"], "--lease <NAME>", "--help"),
        refused(&run(&["--lease", "a", "--lease", "b"]), "--lease", "multiple times"),
        refused(&run(&["--leese", "a"]), "'--leese'", "'--lease'"),
        refused(&run(&["--lease", "a", "-no-wait"]), "'-n'", "Usage:"),
        refused(&run(&["--lease", "a", "--no-wait=true"]), "'true'", "Usage:"),
        refused(&run(&["--lease", "a", "--no-wait", "--wait", "3s"]), "--no-wait", "Usage:"),
        refused(&run(&["--lease", "a", "--isolate", "always"]), "'always'", "Usage:"),
        refused(&run(&["--lease", "a", "--isolate=maybe"]), "'maybe'", "auto, always, never"),
        refused(&run(&["--lease", "a", "--detach"]), "'--detach'", "Usage:"),
        refused(&run(&["--lease", "a", "--on-lost", ""]), "--on-lost", "leave it out"),
        refused(&run(&["--lease", "a", "--node", ""]), "--node", "leave it out"),
        refused(&["run", "--lease", "a", "--", ""], "<COMMAND>", "a variable is not set"),
        refused(&["run", "--lease", "a", "--shell", "--", " "], "<COMMAND>", "say what is meant"),
        case(127, &["run", "--lease", "a", "--", "no-such"], "\"no-such\"", "PATH"),
        case(127, &["run", "--lease", "a", "--", "/no/such"], "\"/no/such\"", "Correct its path"),
        case(127, &["run", "--lease", "a", "--", "sleep 0"], "\"sleep 0\"", "--shell"),
        case(127, &["run", "--lease", "a", "--", "x\u{1b}[31m"], "\\u{1b}[31m", "PATH"),
        case(127, &["run", "--lease", "a", "--", "true"], "\"true\"", "PATH").with("PATH", "/none"),
        case(127, &["run", "--lease", "a", "--", "./script"], "./script", "interpreter")
            .file("script", "#!/no/such/shell\n")
            .by("chmod +x script; exec \"$0\" \"$@\""),
        case(126, &["run", "--lease", "a", "--", "."], "\".\"", "may run"),
        case(126, &["run", "--lease", "a", "--", "./data"], "\"./data\"", "may run")
            .file("data", "text"),
        case(126, &["run", "--lease", "a", "--", "./noise"], "\"./noise\"", "may run")
            .file("noise", b"\x00\x01\x02".to_vec())
            .by("chmod +x noise; exec \"$0\" \"$@\""),
        case(2, &["run", "--lease", "a", "--shell", "--", ")("], "yntax error", "unexpected"),
    ]
}
