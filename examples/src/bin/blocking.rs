//! The same without async: every call blocks its thread, and the work runs on one of its own.
//!
//! Run two side by side, each in a terminal of its own; each stops after half a minute:
//!
//! ```sh
//! INCUMBENT_NODE=a cargo run -p incumbent-examples --bin blocking
//! INCUMBENT_NODE=b cargo run -p incumbent-examples --bin blocking
//! ```

use std::sync::mpsc;
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::{Candidacy, Node, Overrun};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = incumbent::open("sqlite:app.db").wait()?;
    let node = Node::builder().cluster("billing").join(store).wait()?;
    // Nobody can abort blocking work. If it must not run on, let the process be aborted instead.
    let candidacy = Candidacy::new("archive").on_overrun(Overrun::Report);
    let name = node.name().to_owned();
    let (progress, files) = mpsc::channel();
    let archive = node.lead_blocking(candidacy, move |term| {
        let mut file = 0;
        // Ask often enough: this is how blocking work hears that it has to end.
        while term.is_held() && file < 10 {
            file += 1;
            progress.send(format!("{name}: file {file} under fence {}", term.fence()))?;
            pause(Duration::from_millis(500));
        }
        Ok(()) // done for good if it was still led, asked again otherwise
    })?;
    while let Ok(line) = files.recv_timeout(Duration::from_secs(30)) {
        println!("{line}");
    }
    println!("{} leads: {}", node.name(), archive.is_leader());
    node.leave().wait()?;
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "stands for work that blocks its thread")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
