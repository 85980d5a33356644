//! moto, a double of S3 in Python, from pip. Its conditional writes are atomic as long as one
//! thread does all of them, so it is started that way. It is slow, and for `--full` alone.

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Server, install};
use crate::tree;

pub(super) const SERVER: Server = Server {
    name: "moto",
    store: "stores/object",
    variable: "INCUMBENT_TEST_S3",
    start,
    companions: &[],
};

/// What its clients must have in their environment; it takes anything.
pub(super) const CREDENTIALS: [(&str, &str); 2] =
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

fn start() -> Result<Running> {
    let below = tree::root()?.join("target/pip/moto");
    if !below.join("moto").is_dir() {
        std::fs::create_dir_all(&below)?;
        install::pip(PACKAGE, &below).context("moto")?;
    }
    let python = install::find("python3").context("there is no python3 to run moto with")?;
    let place = Place::new("moto", None)?;
    let mut serve = place.command(&python);
    serve.env("PYTHONPATH", &below).arg("-c").arg(SCRIPT).arg(place.port.to_string());
    let endpoint = format!("http://127.0.0.1:{}", place.port);
    let url = format!("s3://incumbent/tests?endpoint={endpoint}&allow_http=true");
    place.start(&mut serve, Signal::KILL, url)
}
