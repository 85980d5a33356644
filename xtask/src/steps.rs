//! All checks, in the order in which they run.

mod cargo;
mod fuzzing;
mod harness;
mod proofs;
mod suite;

use anyhow::{Result, bail};

use crate::clock;
use crate::step::{Context, Step, Verdict};
use crate::summary::{self, Row};
use crate::{counts, failures, servers, style};

/// All steps. Cheap ones come first, so that a slip is told soon.
pub(crate) const ALL: &[Step] = &[
    Step { name: "fmt", about: "rustfmt has nothing to change", run: cargo::fmt },
    Step {
        name: "style",
        about: "no long files, leftovers, ignored tests or paths of one machine",
        run: |context| Ok(held(style::check(&context.root)?, "see above")),
    },
    Step {
        name: "failures",
        about: "docs/failures.md names tests that exist, for all that must be covered",
        run: |context| Ok(held(failures::check(&context.root)?, "see above")),
    },
    Step { name: "clippy", about: "no warning in any target of any crate", run: cargo::clippy },
    Step {
        name: "servers",
        about: "private servers for the tests can be had and start",
        run: servers::start_all,
    },
    Step { name: "tests", about: "unit and integration tests of all crates", run: suite::run },
    Step { name: "doctests", about: "examples in the documentation run", run: cargo::doctests },
    Step {
        name: "readme",
        about: "the README's first example is a program that runs, and hands over",
        run: cargo::readme,
    },
    Step {
        name: "sim",
        about: "20,000 simulated clusters (100,000 with --full)",
        run: proofs::sim,
    },
    Step { name: "mutants", about: "every planted mistake is caught", run: proofs::mutants },
    Step {
        name: "drill",
        about: "2,000 runs of whole nodes in virtual time (20,000 with --full), and their planted mistakes",
        run: proofs::drill,
    },
    Step {
        name: "counts",
        about: "no hot path takes more instructions than were accepted",
        run: counts::check,
    },
    Step { name: "docs", about: "the documentation builds without a warning", run: cargo::docs },
    Step { name: "demo", about: "the demonstration runs to its end", run: proofs::demo },
    Step {
        name: "schemathesis",
        about: "what is asked of serve at random is answered as its OpenAPI document says, without an error of its own",
        run: fuzzing::schemathesis,
    },
    Step {
        name: "deny",
        about: "licences, sources and advisories of all dependencies",
        run: cargo::deny,
    },
];

/// Steps that only `--full` has.
pub(crate) const FULL: &[Step] = &[
    Step { name: "s3", about: "the conformance kit holds on a double of S3", run: proofs::s3 },
    Step {
        name: "fleet",
        about: "10, 100 and 1,000 nodes on one PostgreSQL, and none is lost",
        run: proofs::fleet,
    },
    Step {
        name: "orms",
        about: "a term asserted through sqlx, diesel and sea-orm, in a workspace of their own",
        run: cargo::orms,
    },
];

/// Steps that only compute. Tests mostly wait, so these run beside them, with what tests leave over of
/// the processors.
const BESIDE: &[&str] = &["sim", "mutants", "drill", "counts", "docs"];

/// The steps that need the servers.
const SERVED: &[&str] = &["tests", "s3", "fleet", "orms"];

/// Runs the steps, all or those named, and sums up.
pub(crate) fn run(context: &Context, only: &[String]) -> Result<bool> {
    let full = if context.full { FULL } else { &[] };
    for name in only {
        if !ALL.iter().chain(full).any(|step| step.name == name) {
            let names: Vec<&str> = ALL.iter().chain(full).map(|step| step.name).collect();
            bail!("there is no step {name:?}; there are: {}", names.join(", "));
        }
    }
    let chosen: Vec<&Step> = ALL.iter().chain(full).filter(|step| is_chosen(step, only)).collect();
    let started = clock::now();
    let mut context = Context::new(context.root.clone(), context.full);
    let mut rows = Vec::new();
    let tested = chosen.iter().any(|step| step.name == "tests");
    let (beside, others): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|step| tested && BESIDE.contains(&step.name));
    if !beside.is_empty() {
        rows.push(take(&proofs::BUILD, &mut context));
    }
    std::thread::scope(|scope| {
        let mut computing = None;
        for step in others {
            if step.name == "tests" && !beside.is_empty() {
                let mut context = Context::new(context.root.clone(), context.full);
                let beside = &beside;
                computing = Some(scope.spawn(move || {
                    // Only this thread and what it starts: tests come first.
                    let _ = rustix::process::nice(19);
                    beside.iter().map(|step| take(step, &mut context)).collect::<Vec<_>>()
                }));
            }
            rows.push(take(step, &mut context));
        }
        if let Some(computing) = computing {
            let panicked = |_| anyhow::anyhow!("the steps beside the tests panicked");
            rows.extend(computing.join().map_err(panicked)?);
        }
        anyhow::Ok(())
    })?;
    context.servers.clear();
    Ok(summary::print(&rows, started.elapsed()))
}

fn is_chosen(step: &Step, only: &[String]) -> bool {
    // They need the servers also where they are asked for alone.
    let served = only.iter().any(|name| SERVED.contains(&name.as_str()));
    only.is_empty()
        || only.iter().any(|name| name == step.name)
        || (step.name == "servers" && served)
}

fn take(step: &Step, context: &mut Context) -> Row {
    println!("\n== {}: {} ==\n", step.name, step.about);
    let started = clock::now();
    let verdict = (step.run)(context).unwrap_or_else(|it| Verdict::Failed(format!("{it:#}")));
    let took = started.elapsed();
    if let Verdict::Failed(story) = &verdict {
        println!("\n{} FAILED: {story}", step.name);
    }
    println!("\n-- {} took {}", step.name, clock::show(took));
    Row { name: step.name, verdict, took }
}

/// A check that prints its own findings.
fn held(holds: bool, story: &str) -> Verdict {
    if holds { Verdict::Passed } else { Verdict::Failed(story.to_owned()) }
}
