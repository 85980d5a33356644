//! Finding the member that a person means.

use std::time::Duration;

use incumbent::{Cluster, Member, clock};

use crate::exit::{Code, Failure, Outcome};
use crate::out::plain;
use crate::when;

/// So much of an id is enough to mean a member, if no other begins with it.
const SHORTEST: usize = 4;

/// How long a member that has only just joined may take to say its name.
const NAMING: Duration = Duration::from_secs(2);

/// How long to wait between two looks.
const STEP: Duration = Duration::from_millis(50);

/// The live member of this node name, this id, or the beginning of one.
pub(crate) async fn find(cluster: &Cluster, text: &str) -> Outcome<Member> {
    let deadline = clock::now() + NAMING;
    loop {
        let members = cluster.members().await?;
        let alive: Vec<&Member> = members.iter().filter(|member| member.is_alive()).collect();
        if let Some(member) = alive.iter().find(|member| member.id.as_str() == text) {
            return Ok((*member).clone());
        }
        // A member says its name a moment after it joined. Until then it may be the one that is
        // meant, or another of the same name, and choosing among the rest could hit the wrong one.
        if alive.iter().any(|member| is_nameless(member)) && clock::now() < deadline {
            tokio::time::sleep(STEP).await;
            continue;
        }
        return choose(cluster.name(), text, &alive);
    }
}

/// Whether a name is still to come: one that is not heard of any more won't say it.
fn is_nameless(member: &Member) -> bool {
    member.node.is_empty() && !member.is_overdue()
}

fn choose(cluster: &str, text: &str, alive: &[&Member]) -> Outcome<Member> {
    let by = |matches: &dyn Fn(&Member) -> bool| -> Vec<&Member> {
        alive.iter().copied().filter(|member| matches(member)).collect()
    };
    let mut found = by(&|member| member.node == text);
    if found.is_empty() && text.len() >= SHORTEST {
        found = by(&|member| member.id.as_str().starts_with(text));
    }
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(nobody(text, cluster, alive)),
        several => Err(ambiguous(text, several)),
    }
}

/// The name of a member, or its id as long as it has none.
fn called(member: &Member) -> String {
    if member.node.is_empty() { member.id.as_str().to_owned() } else { plain(&member.node) }
}

fn nobody(text: &str, cluster: &str, alive: &[&Member]) -> Failure {
    let known: Vec<String> = alive.iter().map(|member| called(member)).collect();
    let known = if known.is_empty() {
        "no member of it is alive".to_owned()
    } else {
        format!("alive are {}", known.join(", "))
    };
    Failure::wrong(format!(
        "no live member of the cluster {cluster:?} is called {text:?}: {known}. Give a node's name, \
         or a member's id as `incumbent status` shows it"
    ))
}

fn ambiguous(text: &str, several: &[&Member]) -> Failure {
    let mut message =
        format!("{} live members are called {text:?}: name one by its id", several.len());
    for member in several {
        let address = member.address.as_deref().unwrap_or("no address");
        message.push_str(&format!(
            "\n  {}  {}  joined {}, {}",
            member.id,
            plain(&member.node),
            when::ago(member.joined_ms),
            plain(address)
        ));
    }
    Failure::new(Code::Usage, message)
}
