//! From a CSV file to a release that may be published, and its answers.

use std::fs;
use std::ops::ControlFlow;

use fairdp::{FitOptions, InitOptions, PredictOptions, Progress, fit, init, predict, verify};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("release-example-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let table = folder.join("people.csv");
    let person = |i: usize| {
        let (age, job) = (18 + i * 37 % 63, ["clerk", "cook", "nurse"][i % 3]);
        let is_long = (age > 45) != (i * 29 % 31 < 4);
        format!("{i},{age},{job},{},{}\n", ["f", "m"][i / 3 % 2], if is_long { "yes" } else { "no" })
    };
    fs::write(&table, format!("id,age,job,sex,stays\n{}", (0..5_000).map(person).collect::<String>()))?;
    let tables = [table.to_string_lossy().into_owned()];

    // A proposal. What it read from the records is marked, and is declared here: these values are
    // known without the records.
    let options = InitOptions { label: "stays".into(), groups: vec!["sex".into()], ..InitOptions::default() };
    let config = folder.join("fairdp.toml");
    fs::write(&config, init(&tables, &options)?.replace("from = \"data\"", "public = true"))?;

    let run = folder.join("run");
    let fitted = fit(&config, &FitOptions::new(&run), &mut |progress| {
        if let Progress::Stage(stage) = progress {
            println!("{stage}");
        }
        ControlFlow::Continue(())
    })?;
    println!("epsilon {:.3}, {}", fitted.statement.epsilon, fitted.statement.mark);
    for group in &fitted.fairness.groups {
        println!("{}: accuracy {:?}", group.group, group.accuracy.value);
    }
    assert_eq!(verify(&run)?.epsilon, fitted.statement.epsilon);

    let answers = folder.join("answers.csv");
    let options = PredictOptions { keep: vec!["id".into()], reasons: 1, ..PredictOptions::default() };
    let predicted = predict(&run, &tables, &answers, &options)?;
    assert_eq!(predicted.answered, 5_000);
    println!("{}", fs::read_to_string(&answers)?.lines().take(3).collect::<Vec<_>>().join("\n"));
    fs::remove_dir_all(&folder)?;
    Ok(())
}
