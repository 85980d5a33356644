//! Finding the member that a person means.

use incumbent::{Cluster, Member};

use crate::exit::{Code, Failure, Outcome};
use crate::out::plain;
use crate::when;

/// So much of an id is enough to mean a member, if no other begins with it.
const SHORTEST: usize = 4;

/// The live member of this node name, this id, or the beginning of one.
pub(crate) async fn find(cluster: &Cluster, text: &str) -> Outcome<Member> {
    let members = cluster.members().await?;
    let alive: Vec<&Member> = members.iter().filter(|member| member.is_alive()).collect();
    let by = |matches: &dyn Fn(&Member) -> bool| -> Vec<&Member> {
        alive.iter().copied().filter(|member| matches(member)).collect()
    };
    let mut found = by(&|member| member.id.as_str() == text);
    if found.is_empty() {
        found = by(&|member| member.node == text);
    }
    if found.is_empty() && text.len() >= SHORTEST {
        found = by(&|member| member.id.as_str().starts_with(text));
    }
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(nobody(text, cluster.name(), &alive)),
        several => Err(ambiguous(text, several)),
    }
}

fn nobody(text: &str, cluster: &str, alive: &[&Member]) -> Failure {
    let known: Vec<String> = alive.iter().map(|member| plain(&member.node)).collect();
    let known = if known.is_empty() { "nobody".to_owned() } else { known.join(", ") };
    Failure::wrong(format!(
        "no live member of the cluster {cluster:?} is called {text:?}: alive are {known}. Give a \
         node's name, or a member's id as `incumbent status` shows it"
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
