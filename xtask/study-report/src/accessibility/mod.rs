//! Reports and their index in a browser: an automated accessibility check, at the width of a laptop
//! and of a phone, in light and dark.
//!
//! Needs Chromium; says that it was skipped where there is none.

use std::fs;
use std::path::Path;
use std::process::Command;

use run_records::output::{Contents, ReportFolder};
use serde::Deserialize;

use super::{fixture, write, write_index};

/// Widths of a laptop and of a phone, in CSS pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// What the checks of one page at one width found.
#[derive(Debug, Deserialize)]
struct Checked {
    texts: usize,
    width: u32,
    findings: Vec<String>,
}

/// Every finding on a page, in light and dark, at both widths; `None` without a browser.
fn findings(page: &Path) -> Option<Vec<String>> {
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))?;
    // What is folded is checked, too.
    let html = fs::read_to_string(page).unwrap().replace("<details>", "<details open>");
    let script = format!("<script>{}</script></body>", include_str!("checks.js"));
    let light = html.replace("(prefers-color-scheme: dark)", "not all").replace("</body>", &script);
    let dark = html.replace("@media (prefers-color-scheme: dark)", "@media all").replace("</body>", &script);
    let folder = page.parent().unwrap();
    let mut frames = String::new();
    for (name, text) in [("light", light), ("dark", dark)] {
        fs::write(folder.join(format!("checked-{name}.html")), text).unwrap();
        for width in WIDTHS {
            // A frame is as narrow as asked; a window is not.
            frames.push_str(&format!(
                r#"<iframe src="checked-{name}.html" width="{width}" height="800" style="border:0"></iframe>"#
            ));
        }
    }
    let collect = "onmessage = (event) => document.body.append(`CHECKED${JSON.stringify(event.data)}\\n`)";
    let around = folder.join("checked-around.html");
    fs::write(&around, format!("<!DOCTYPE html><script>{collect}</script><body>{frames}</body>")).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args([
            "--allow-file-access-from-files",
            "--window-size=1400,1000",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", around.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    // The DOM is dumped as HTML.
    let dom = dom.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let checked: Vec<Checked> = dom
        .split("CHECKED")
        .skip(1)
        .filter_map(|text| serde_json::Deserializer::from_str(text).into_iter().next()?.ok())
        .collect();
    let widths: Vec<u32> = checked.iter().map(|checked| checked.width).collect();
    assert_eq!(checked.len(), 2 * WIDTHS.len(), "{widths:?} {}", String::from_utf8_lossy(&output.stderr));
    for width in WIDTHS {
        assert_eq!(widths.iter().filter(|found| **found == width).count(), 2, "{widths:?}");
    }
    assert!(checked.iter().all(|checked| checked.texts > 0), "an empty page passes every check");
    Some(
        checked
            .into_iter()
            .flat_map(|c| c.findings.into_iter().map(move |text| format!("{} px: {text}", c.width)))
            .collect(),
    )
}

fn assert_accessible(page: &Path) {
    match findings(page) {
        Some(found) => assert!(found.is_empty(), "{}:\n{}", page.display(), found.join("\n")),
        None => println!("skipped: Chromium is not installed"),
    }
}

#[test]
fn report_and_index_pass_the_checks() {
    let root = tempfile::tempdir().unwrap();
    let mut results = fixture::study();
    let title = fixture::presentation().title;
    let claim =
        |name: &str| ReportFolder::claim(&root.path().join(name), name, &title, Contents::ReportAndRecords).unwrap();
    write(&results, &fixture::presentation(), &claim("adult")).unwrap();
    results.quick = true;
    write(&results, &fixture::presentation(), &claim("quick")).unwrap();
    let index = write_index(root.path(), None).unwrap();
    assert_accessible(&index);
    assert_accessible(&root.path().join("adult/report.html"));
    assert_accessible(&root.path().join("quick/report.html"));
}

#[test]
fn the_checks_see_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(
        &page,
        r#"<!DOCTYPE html><html><head></head><body><main><h1>A</h1><h3>B</h3><img src="x.png"><a href="y"></a>
        <p style="color:#999;background:#fff">pale</p><p id="a">1</p><p id="a">2</p><div style="width:3000px">wide</div>
        <table><tr><th>h</th></tr></table></main></body></html>"#,
    )
    .unwrap();
    let Some(found) = findings(&page) else {
        println!("skipped: Chromium is not installed");
        return;
    };
    let found = found.join("\n");
    for rule in ["3.1.1", "2.4.2", "1.3.1 headings", "1.1.1", "2.4.4", "4.1.1", "1.3.1 tables", "1.4.10", "1.4.3"] {
        assert!(found.contains(rule), "{rule} in\n{found}");
    }
}
