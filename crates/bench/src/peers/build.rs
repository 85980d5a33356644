//! The programs of peers, built from their ordinary registries into the build directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use super::contender::{Contender, Origin, Store};

/// How a program is started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// What comes before the arguments that all programs take.
    first: Vec<String>,
}

impl Program {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.first);
        command
    }

    fn new(path: PathBuf) -> Self {
        Self { path, first: Vec::new() }
    }
}

/// Builds a contender's program, or finds the one that was built.
pub(crate) fn build(contender: &Contender) -> Result<Program> {
    let sources = root().join("bench/peers");
    let built = target()?.join("peers");
    std::fs::create_dir_all(&built)?;
    println!("building {}", contender.label());
    match contender.origin {
        Origin::Ours => ours(),
        Origin::Cargo(name) => cargo(&sources.join("rust"), &built.join("rust"), name),
        Origin::Go(name) => {
            if contender.store == Store::Kubernetes {
                go(&sources.join("apiserver"), &api_server()?)?;
            }
            go(&sources.join(name), &built.join("bin").join(name))
        }
        Origin::Maven(name) => maven(&sources.join(name), &built.join(name)),
        Origin::Pip(name) => pip(&sources.join(name), &built.join(name)),
    }
}

/// Kubernetes' API server, which no package of the distribution brings.
pub(crate) fn api_server() -> Result<PathBuf> {
    Ok(target()?.join("peers/bin/apiserver"))
}

/// The workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The build directory that this program is in.
pub(crate) fn target() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let built = program.ancestors().find(|place| place.join("CACHEDIR.TAG").is_file());
    Ok(built.context("cargo marks its build directory, and none was found")?.to_owned())
}

fn ours() -> Result<Program> {
    let path = std::env::current_exe()?.with_file_name("incumbent-contender");
    ensure!(path.is_file(), "incumbent-contender isn't built: run `cargo xtask bench peers`");
    Ok(Program::new(path))
}

/// All of the workspace at once, because alone each would want other features of what they share. If that
/// fails, this one alone.
fn cargo(sources: &Path, built: &Path, name: &str) -> Result<Program> {
    let package = format!("peer-{name}");
    let build = |which: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(["build", "--release", "--locked", "--quiet"]).args(which);
        // What cargo says about this very program would make it build some crates anew.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("CARGO_") {
                command.env_remove(variable);
            }
        }
        run(command.current_dir(sources).env("CARGO_TARGET_DIR", built))
    };
    build(&["--workspace"]).or_else(|_| build(&["--package", &package]))?;
    Ok(Program::new(built.join("release").join(package)))
}

fn go(sources: &Path, program: &Path) -> Result<Program> {
    // Kubernetes' takes minutes, during which other things may run here.
    let mut command = Command::new("nice");
    command.args(["go", "build", "-o"]).arg(program).arg(".");
    run(command.current_dir(sources).env("GOFLAGS", "-mod=readonly"))?;
    Ok(Program::new(program.to_owned()))
}

fn maven(sources: &Path, built: &Path) -> Result<Program> {
    let (libraries, classes) = (built.join("lib"), built.join("classes"));
    let manifest = std::fs::read_to_string(sources.join("pom.xml"))?;
    once(&built.join("built-from"), &manifest, || {
        let mut command = Command::new("mvn");
        command.args(["-q", "-B", "dependency:copy-dependencies"]);
        command.arg(format!("-DoutputDirectory={}", libraries.display()));
        run(command.current_dir(sources))
    })?;
    std::fs::create_dir_all(&classes)?;
    let mut command = Command::new("javac");
    command.arg("-cp").arg(libraries.join("*")).arg("-d").arg(&classes);
    run(command.arg(sources.join("src/main/java/Peer.java")))?;
    let java = incumbent_proving::server::find("java").context("no java was found")?;
    let places = format!("{}:{}", classes.display(), libraries.join("*").display());
    // Many run on a small machine, each for seconds.
    let first = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx96m", "-cp", &places, "Peer"];
    Ok(Program { path: java, first: first.map(str::to_owned).to_vec() })
}

fn pip(sources: &Path, built: &Path) -> Result<Program> {
    let requirements = sources.join("requirements.txt");
    once(&built.join("built-from"), &std::fs::read_to_string(&requirements)?, || {
        run(Command::new("python3").args(["-m", "venv"]).arg(built))?;
        let mut command = Command::new(built.join("bin/pip"));
        run(command.args(["install", "--quiet", "--requirement"]).arg(&requirements))
    })?;
    let main = sources.join("main.py").display().to_string();
    Ok(Program { path: built.join("bin/python"), first: vec![main] })
}

/// Does what brings packages only where they aren't there yet, for that asks the network.
fn once(stamp: &Path, manifest: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    if std::fs::read_to_string(stamp).is_ok_and(|built| built == manifest) {
        return Ok(());
    }
    work()?;
    Ok(std::fs::write(stamp, manifest)?)
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{program} can't be started"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        let line = said.lines().find(|line| line.to_lowercase().contains("error"));
        bail!("{program} failed: {}", line.unwrap_or("it says nothing").trim());
    }
    Ok(())
}
