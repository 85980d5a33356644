//! moto, a double of S3 in Python. Its conditional writes are atomic as long as one thread does all of
//! them, so it is started that way.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::{Recipe, Server, Site, build_directory, program};

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_S3";

/// What its clients must have in their environment; it takes anything.
pub const CREDENTIALS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];

const PACKAGE: &str = "moto[s3,server]==5.2.1";

/// One thread, and a bucket.
const SCRIPT: &str = r#"
import sys
from werkzeug.serving import run_simple
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends

s3_backends["123456789012"]["aws"].create_bucket("incumbent", "us-east-1")
application = DomainDispatcherApplication(create_backend_app)
run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=False)
"#;

/// Starts one.
#[must_use]
pub fn start() -> Server {
    let library = library();
    let serve = move |site: &Site| {
        let mut command = site.command(&program::required("python3", "python3"));
        command.env("PYTHONPATH", &library).arg("-c").arg(SCRIPT).arg(site.port().to_string());
        command
    };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    let recipe = Recipe { serve: Box::new(serve), ready: Site::listens, kill, end };
    Server::new(Site::new("moto"), recipe)
}

/// Its bucket.
#[must_use]
pub fn url(server: &Server) -> String {
    let endpoint = format!("http://127.0.0.1:{}", server.port());
    format!("s3://incumbent/tests?endpoint={endpoint}&allow_http=true")
}

/// Where it is, installed with pip below the build directory if need be.
fn library() -> PathBuf {
    let below = build_directory().join("pip/moto");
    if !below.join("moto").is_dir() {
        let mut pip = Command::new(program::required("pip", "python3-pip"));
        pip.args(["install", "--quiet", "--target"]).arg(&below).arg(PACKAGE);
        let done = pip.stdin(Stdio::null()).output().expect("pip runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "pip failed: {}", said.trim());
    }
    below
}
