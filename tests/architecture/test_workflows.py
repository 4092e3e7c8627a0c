"""The workflows call targets that exist, and may do no more than they need."""

import re

import yaml


def workflows(root):
    """Return each workflow of GitHub by the name of its file."""
    files = sorted((root / ".github/workflows").glob("*.yml"))
    return {file.name: yaml.safe_load(file.read_text("utf-8")) for file in files}


def steps(workflow):
    """Return all steps of a workflow."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_every_target_that_a_workflow_makes_exists(root):
    """``make NAME`` in a step is a target of the Makefile, and a script is a file."""
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text("utf-8"), re.MULTILINE))
    commands = "\n".join(
        step.get("run", "") for workflow in workflows(root).values() for step in steps(workflow)
    )
    made = set(re.findall(r"\bmake ([a-z-]+)", commands))
    scripts = re.findall(r"^\.ci/\w+", commands, re.MULTILINE)

    assert made
    assert made - targets == set()
    assert scripts == [".ci/run"]
    assert (root / ".ci/run").exists()


def test_a_workflow_may_only_read_unless_a_job_says_more(root):
    """A step of another author cannot write to the repository or to the package index."""
    assert {name: workflow["permissions"] for name, workflow in workflows(root).items()} == {
        name: {"contents": "read"} for name in ("check.yml", "docs.yml", "release.yml")
    }


def test_the_package_index_gets_a_release_without_a_stored_token(root):
    """Trusted publishing needs an identity token, and the job that builds is another one."""
    jobs = workflows(root)["release.yml"]["jobs"]

    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["needs"] == "build"
    assert "secrets." not in (root / ".github/workflows/release.yml").read_text("utf-8")
