//! Warnings about names that nobody knows, which are mostly mistyped.

use incumbent::{Cluster, Member};

use crate::exit::Outcome;
use crate::out::plain;
use crate::session::Session;
use crate::style::ODD;

/// So many of the names that there are get listed.
const MOST: usize = 8;

/// What a name is meant to be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Node,
    Duty,
    Family,
}

/// Warns of names that nobody knows at the moment, with those that there are, and of a cluster that
/// nobody is in.
pub(crate) async fn warn(
    session: &Session,
    cluster: &Cluster,
    names: &[(Named, &str)],
    unknown: &[String],
) -> Outcome {
    let members = cluster.members().await?;
    let alive: Vec<&Member> = members.iter().filter(|member| member.is_alive()).collect();
    if alive.is_empty() {
        session.remark(format!(
            "{ODD}warning:{ODD:#} the cluster {} in {} has no live member: nobody does anything \
             about it until one joins. If that is unexpected, check --cluster and --store",
            plain(cluster.name()),
            plain(&session.place.shown())
        ));
        return Ok(());
    }
    for (named, name) in names.iter().filter(|(_, name)| unknown.iter().any(|it| it == name)) {
        let (said, known) = match named {
            Named::Node => {
                let nodes = alive.iter().map(|member| member.node.clone());
                ("no live node is called", nodes.collect())
            }
            Named::Duty => {
                let duties = cluster.duties().await?;
                let duties = duties.into_iter().map(|duty| duty.id.as_str().to_owned());
                ("no live node lists the duty", duties.collect())
            }
            Named::Family => {
                let families = alive.iter().flat_map(|member| member.families.keys().cloned());
                ("no live node names a version of the family", families.collect())
            }
        };
        session.remark(format!(
            "{ODD}warning:{ODD:#} {said} {}: {}. It holds when there is one",
            plain(name),
            listed(name, known)
        ));
    }
    Ok(())
}

/// The names that there are, those that look most like the wanted one first.
fn listed(wanted: &str, mut known: Vec<String>) -> String {
    known.retain(|name| !name.is_empty());
    known.sort();
    known.dedup();
    known.sort_by_key(|name| std::cmp::Reverse(alike(wanted, name)));
    if known.is_empty() {
        return "there is none at all".to_owned();
    }
    let more = known.len().saturating_sub(MOST);
    let names: Vec<String> = known.iter().take(MOST).map(|name| plain(name)).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there are {}{more}", names.join(", "))
}

/// How many characters two names share at their beginning and at their end.
fn alike(one: &str, other: &str) -> usize {
    let same = |(one, other): &(char, char)| one.eq_ignore_ascii_case(other);
    let beginning = one.chars().zip(other.chars()).take_while(same).count();
    let end = one.chars().rev().zip(other.chars().rev()).take_while(same).count();
    (beginning + end).min(one.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_alike_comes_first() {
        let known = ["alpha", "billing-1", "billing-2", ""].map(str::to_owned).to_vec();
        assert_eq!(listed("biling-2", known.clone()), "there are billing-2, billing-1, alpha");
        assert_eq!(listed("x", Vec::new()), "there is none at all");
        let many: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
        assert!(listed("n", many).ends_with("n07 and 12 more"));
    }
}
