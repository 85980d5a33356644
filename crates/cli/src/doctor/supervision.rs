//! How `run` would supervise a command here.

use std::process::Stdio;
use std::time::Duration;

use incumbent::witness::{self, Status};
use tokio::process::Command;

use super::finding::Finding;
use super::part::Supervised;

/// A process that says nothing for so long won't.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks a process that does as `run` would.
pub(crate) async fn look() -> Finding {
    match ask().await {
        Ok(supervised) => tell(&supervised),
        Err(why) => Finding::warn(
            "supervision",
            format!(
                "`run` can't supervise commands here: {why}. Programs that use the library are \
                 not affected"
            ),
        ),
    }
}

/// Whether a program of the user's that calls `witness::init` would have a witness here.
pub(crate) fn witness() -> Finding {
    match witness::status() {
        Status::NotInitialised { hindrance: Some(why) } | Status::Unwatched { why } => {
            Finding::warn(
                "witness",
                format!("`witness::init()` would not help a program started like this: {why}"),
            )
        }
        _ => Finding::ok(
            "witness",
            "a program that calls `witness::init()` can have a witness: should it die, others \
             take over at once",
        ),
    }
}

async fn ask() -> Result<Supervised, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["doctor-part", "layout"]).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let answered = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = answered.map_err(|_| "it takes too long")?.map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        said.trim().trim_start_matches("incumbent: ").to_owned()
    })
}

fn tell(supervised: &Supervised) -> Finding {
    let mut finding = if supervised.isolated {
        Finding::ok(
            "supervision",
            "`run` gives a command a PID namespace of its own: nothing of it survives its lease",
        )
    } else {
        Finding::ok("supervision", "`run` supervises a command with a guardian").note(
            "Should `incumbent` and its guardian both be killed or stopped at once, what the \
             command has started may live on; as root or with --isolate it can't.",
        )
    };
    if supervised.privileged && !supervised.isolated {
        finding = finding.note("No PID namespace can be made here, although this is root.");
    }
    match &supervised.unproven {
        None => finding.note("The death of `run` can be proven: others take over at once."),
        Some(why) => finding.note(format!(
            "The death of `run` can't be proven ({why}): others wait for its ttl if it is killed."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_plain_layout_is_told() {
        let plain =
            Supervised { isolated: false, privileged: true, unproven: Some("no /proc".into()) };
        let notes = tell(&plain).notes.join("\n");
        for part in ["may live on", "although this is root", "no /proc", "wait for its ttl"] {
            assert!(notes.contains(part), "{notes}");
        }
        let isolated = Supervised { isolated: true, privileged: true, unproven: None };
        assert!(!tell(&isolated).notes.join("\n").contains("live on"));
    }
}
