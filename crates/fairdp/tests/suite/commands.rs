//! Sixty commands as people, scripts and supervisors give them, each with its exit code.

use std::fs;
use std::process::Command;

use fairdp::Exit;

use crate::program::{declared, done, text};

/// A line of a shell, in a folder with `table.csv`, `fairdp.toml`, a `run`, and what the lines before it made;
/// and the code that it ends with.
const SCRIPT: &str = r#"
0 fairdp --version
0 fairdp --help
0 fairdp help predict
2 fairdp
2 fairdp fti fairdp.toml
2 fairdp fit fairdp.toml
0 fairdp init table.csv --label outcome | grep -q '^version = 1'
0 fairdp init - --label outcome < table.csv > stdin.toml
0 zstd -q table.csv -o table.csv.zst 2> /dev/null || gzip -k table.csv
0 gzip -ck table.csv | fairdp init - --label outcome --json > /dev/null
2 fairdp init - - --label outcome < table.csv
2 fairdp init table.csv --label outcom
2 fairdp init table.csv --label outcome --group groop
1 fairdp init none.csv --label outcome
0 fairdp init table.csv --label outcome --out - | grep -q '^version = 1'; test ! -e ./-
0 fairdp init table.csv --label outcome --out /dev/stdout | grep -q '^version = 1'
0 fairdp init table.csv --label outcome --out new.toml
2 fairdp init table.csv --label outcome --out new.toml
3 fairdp fit new.toml --plan
0 fairdp fit fairdp.toml --plan
0 fairdp fit fairdp.toml --plan --json | grep -q '"half_widths"'
0 fairdp fit fairdp.toml --plan --no-data
0 fairdp fit - --plan < fairdp.toml
0 cat fairdp.toml | fairdp fit /dev/stdin --plan
0 sed 's/table.csv/-/' fairdp.toml > pipe.toml; fairdp fit pipe.toml --plan < table.csv
2 fairdp fit - --plan < pipe.toml
2 sed 's/^epsilon/epsilom/' fairdp.toml > slip.toml; fairdp fit slip.toml --plan
2 fairdp fit slip.toml --out x
2 fairdp fit slip.toml --plan --json | grep -q '"mistakes"'; exit ${PIPESTATUS[0]}
2 fairdp fit fairdp.toml --plan --epsilon 0
3 fairdp fit fairdp.toml --plan --epsilon 0.0001
1 fairdp fit none.toml --plan
1 fairdp fit . --plan
2 test $(fairdp fit table.csv --plan 2>&1 | wc -l) = 101; fairdp fit table.csv --plan
2 fairdp fit fairdp.toml --out run --epsilon x --json | grep -q '"code":2'; exit ${PIPESTATUS[0]}
3 fairdp fit fairdp.toml --out run
3 fairdp fit fairdp.toml --out nothing --resume
0 fairdp fit fairdp.toml --out run --seed 1 --resume
3 fairdp fit fairdp.toml --out run --seed 2 --resume
0 fairdp fit pipe.toml --out piped < table.csv
0 fairdp verify run --verbose
0 fairdp predict run table.csv --out l.csv --log said.log; fairdp verify none --log said.log; grep -q 'Z  error: ' said.log
1 fairdp verify none --color always 2>&1 | grep -q '31merror'; exit ${PIPESTATUS[0]}
1 cp table.csv t.xlsx; fairdp init t.xlsx --label outcome 2>&1 | grep -q duckdb; exit ${PIPESTATUS[0]}
0 fairdp verify run/release
0 fairdp verify run --json | grep -q '"version":1'
1 fairdp verify nothing
1 mkdir -p half/private; fairdp verify half
0 fairdp report run | grep -q 'accuracy'
0 fairdp report run --json > report.json
0 fairdp predict run table.csv --out p.csv
0 fairdp predict run table.csv --out p.tsv.zst
0 fairdp predict run table.csv --out p.parquet --json
0 fairdp predict run - --out - < table.csv | cmp - p.csv
0 fairdp predict run table.csv --out /dev/stdout | head -1
0 fairdp predict run table.csv --out - 2> /dev/null | (exec <&-; true); test ${PIPESTATUS[0]} = 0
0 sed 's/,/^/g' table.csv > carets.csv; fairdp predict run carets.csv --delimiter ^ --out - | cmp - p.csv
1 fairdp predict run carets.csv --out - 2>&1 | grep -qF 'delimited by `^` (the option `delimiter`)'; exit ${PIPESTATUS[0]}
2 fairdp init carets.csv --label outcome 2>&1 | grep -qF 'delimited by `^`'; exit ${PIPESTATUS[0]}
2 sed 's/table.csv/carets.csv/' fairdp.toml > c.toml; fairdp fit c.toml --plan 2>&1 | grep -qF 'delimited by `^`'; exit ${PIPESTATUS[0]}
2 fairdp predict run carets.csv --delimiter ^^ --out -
2 fairdp predict run p.parquet --delimiter ^ --out -
0 tr , '\t' < table.csv | fairdp predict run - --delimiter '\t' --out - | cmp - p.csv
0 fairdp init carets.csv --label outcome --group group --delimiter ^ | sed 's/from = "data"/public = true/' > carets.toml
0 fairdp fit carets.toml --out carets --seed 1 -q; fairdp predict carets carets.csv --out q.csv
0 fairdp predict carets table.csv --delimiter , --out - | cmp - q.csv
0 fairdp drift carets carets.csv
1 (head -1 table.csv; sed -n '5s/^[^,]*/zzz/p' table.csv) > b.csv; fairdp predict run table.csv b.csv --out r.csv 2>&1 | grep -q '^error: b.csv:2: '; exit ${PIPESTATUS[0]}
0 fairdp init table.csv b.csv --label outcome | grep -q '`zzz` in line 2 of `b.csv`'
1 (ulimit -v 60000; fairdp fit fairdp.toml --out small --threads 1) 2>&1 | grep -q 'no more memory'; exit ${PIPESTATUS[0]}
1 (ulimit -v 60000; fairdp fit fairdp.toml --out smaller --threads 1 --json) 2> /dev/null | grep -q '"code":1'; exit ${PIPESTATUS[0]}
2 fairdp predict run table.csv --out p.xlsx
2 fairdp predict run table.csv --out table.csv
2 fairdp predict run table.csv --out run/release/p.csv
2 fairdp predict run table.csv --out q.csv --keep agee
1 fairdp predict run table.csv --out none/p.csv
2 fairdp predict run table.csv --out - --strict
1 fairdp predict run table.csv --out - > /dev/full
1 fairdp predict run table.csv --out /dev/full 2>&1 | grep -qF 'write `/dev/full`'; exit ${PIPESTATUS[0]}
1 fairdp completions bash > /dev/full
1 fairdp verify table.csv 2>&1 | grep -q 'is no run and no release'; exit ${PIPESTATUS[0]}
4 cp -r run gone; rm gone/release/card.html; test "$(fairdp verify gone 2>&1)" = 'error: `gone/release/card.html`: is missing' && fairdp verify gone
4 ln -s /etc/passwd gone/release/card.html; test "$(fairdp verify gone 2>&1 | wc -l)" = 1 && fairdp verify gone
2 fairdp fairness run --mode worst_group --out f 2>&1 | grep -q "similar value exists: 'worst-group'"; exit ${PIPESTATUS[0]}
4 cp -r run empty; mkdir empty/release/more; fairdp verify empty 2>&1 | grep -q 'more`: is an empty folder'; exit ${PIPESTATUS[0]}
2 printf 'x,y\n1,a,3\n2,b\n' > ar.csv; fairdp init ar.csv --label y 2>&1 | grep -q 'left out: 1, the first: ar.csv:2: '; exit ${PIPESTATUS[0]}
2 fairdp init table.csv --label outcome --model network 2>&1 | grep -q 'no column of images'; exit ${PIPESTATUS[0]}
2 sed 's/column = "group"/column = "outcome"/' fairdp.toml > l.toml; fairdp fit l.toml --plan 2>&1 | grep -q 'another column than the label'; exit ${PIPESTATUS[0]}
2 fairdp example --rows 0
2 fairdp predict run table.csv --out - --explain 0
2 fairdp fit fairdp.toml --plan --seed=-1 2>&1 | grep -q 'a whole number from 0 to'; exit ${PIPESTATUS[0]}
4 cp -r run bad; printf x >> bad/release/card.html; fairdp verify bad
4 fairdp verify bad --json | grep -q '"code":4'; exit ${PIPESTATUS[0]}
0 fairdp account --noise-multiplier 1 --sampling-rate 0.01 --steps 100 --json | grep -q '"version":1'
2 fairdp account --steps 3
0 fairdp methods --json | grep -q '"methods"'
0 fairdp methods --like softadaclip | grep -q '^soft-adaptive  *SoftAdaClip '
0 fairdp methods --like soft --json | grep -q '"label": "SoftAdaClip"'
0 fairdp methods --like xyzzy | grep -q '^no method has `xyzzy`'
0 fairdp schema | grep -q '"additionalProperties": false'
0 fairdp completions bash > fairdp.bash; bash -n fairdp.bash; source fairdp.bash; complete -p fairdp
0 command -v fish || exit 0; fairdp completions fish > f.fish; fish -c 'source f.fish; complete -C "fairdp pred"' | grep -q ^predict
0 command -v zsh || exit 0; fairdp completions zsh > f.zsh; zsh -fc 'autoload -U compinit; compinit -u -D; . ./f.zsh; test $_comps[fairdp] = _fairdp'
0 fairdp man man1; test -s man1/fairdp-fit.1
0 fairdp ledger plan none.json --fits 3 --cap 3 --delta 1e-6 --json
1 fairdp ledger show none.json
0 env -i "$(command -v fairdp)" verify run
0 (umask 077; fairdp fairness run --mode none --out fair)
0 mkfifo in.csv; (cat table.csv > in.csv &); fairdp predict run in.csv --out - | cmp - p.csv
143 timeout -s KILL 20 bash -c 'fairdp fit pipe.toml --out waits < <(sleep 15) & p=$!; sleep 2; kill -TERM $p; sleep 1; kill -TERM $p; wait $p'
"#;

#[test]
fn sixty_commands_end_as_the_table_says() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    fs::write(here.join("piped.toml"), "").unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_fairdp")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut n_commands = 0;
    for line in SCRIPT.lines().filter(|line| !line.is_empty()) {
        let (code, command) = line.split_once(' ').unwrap();
        let output = Command::new("bash").current_dir(here).env("PATH", &path).args(["-c", command]).output().unwrap();
        let told = format!("{command}: {:?} {}{}", output.status, text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), code.parse().ok(), "{told}");
        let known = Exit::ALL.iter().any(|exit| exit.code().to_string() == code);
        assert!(known || code == "143", "{code} is in no table");
        assert!(!told.contains("panicked"), "{told}");
        n_commands += 1;
    }
    assert!(n_commands >= 60, "{n_commands}");
}

/// The fields of every JSON output: the page for users has a table of them.
#[test]
fn fields_for_programs_change_on_purpose_alone() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "--ledger", "l.json", "--seed", "1", "-q"]);
    let ledger = ["--cap", "3", "--delta", "1e-6", "--json"];
    let commands: [&[&str]; 14] = [
        &["init", "table.csv", "--label", "outcome", "--json"],
        &["fit", "fairdp.toml", "--plan", "--json"],
        &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "--resume", "--json"],
        &["predict", "run", "table.csv", "--out", "p.csv", "--json"],
        &["report", "run", "--json"],
        &["verify", "run", "--json"],
        &["drift", "run", "table.csv", "--json"],
        &["evaluate", "run", "table.csv", "--epsilon", "1", "--seed", "1", "--out", "new", "--json"],
        &["audit", "fairdp.toml", "--canaries", "20", "--repeats", "20", "--seed", "1", "--json"],
        &["account", "--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "100", "--json"],
        &["methods", "--json"],
        &["ledger", "show", "l.json", "--json"],
        &[&["ledger", "plan", "n.json", "--fits", "2"], &ledger[..]].concat(),
        &[&["ledger", "split", "n.json", "--shares", "1,2"], &ledger[..]].concat(),
    ];
    let fields = commands.map(|arguments| {
        let answer: serde_json::Value = serde_json::from_str(&done(here, arguments)).unwrap();
        let names: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(answer["version"].is_u64(), "{arguments:?}");
        let most = if arguments[0] == "ledger" { 2 } else { 1 };
        let options = arguments[1..].iter().filter(|word| word.starts_with("--pl") || **word == "--resume");
        let command = arguments[..most].iter().chain(options).copied().collect::<Vec<_>>().join(" ");
        format!("{command}: {}", names.join(", "))
    });
    insta::assert_snapshot!(fields.join("\n"), @r"
    init: configuration, out, text, version
    fit --plan: candidates, delta, epsilon, features, groups, half_widths, ledger, mark, not_covered, releases, started_from, table, training_records, version
    fit --resume: accountant, attacks, chain, covers, delta, delta_reason, epsilon, epsilon_lower, epsilon_of_parts, epsilon_rdp, events, files, given, mark, method, model, noise, not_covered, out_of_scope, private, program, records, relation, sampling, seed, test_figures, total_epsilon, trust, tuning, unit, version
    predict: answered, remarks, rows, table, version
    report: fairness, statement, version
    verify: confirmed_in_200_bits, delta, epsilon, epsilon_rdp, files, mark, private, signed, signed_by, verified, version, with_ledger
    drift: alarms, columns, confidence, notes, privacy, rows, scores, tolerance, version
    evaluate: alarm, comparison, fairness, statement, version
    audit: black_box, delta, epsilon, plant, refuted, releases, version, white_box
    account: answers, case, found, version
    methods: methods, version
    ledger show: at_other_deltas, cap, delta, fits, last_seal, ledger, left, left_in_a_new_scope, scopes, spent, unit, version
    ledger plan: cap, delta, epsilon, fits, version
    ledger split: cap, delta, epsilons, shares, version
    ");
}
