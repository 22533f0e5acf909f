//! Words of files, counted by copies in processes of their own: the same word always goes to the same copy.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use sidestep_filters::{Graph, Group, Kind, Kinds, Launcher, Place, Schedule, Settings, function, worker};

fn kinds() -> Kinds {
    Kinds::new()
        .with(
            "words",
            Kind::new("gives the words of a file", |_| {
                Ok(function(|work| {
                    let text = std::fs::read_to_string(work.unit.settings.need("file")?)?;
                    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| (3..60).contains(&word.len()));
                    for word in words {
                        let mut hasher = DefaultHasher::new();
                        word.hash(&mut hasher);
                        let mut buffer = work.outputs.port("out")?.reserve_for(hasher.finish())?;
                        buffer.copy_in(0, word.as_bytes())?;
                        buffer.commit(word.len())?;
                    }
                    Ok(())
                }))
            })
            .keyed_output("out", "words"),
        )
        .with(
            "count",
            Kind::new("counts words", |_| {
                Ok(function(|work| {
                    let (mut counts, mut word) = (BTreeMap::<String, u32>::new(), Vec::new());
                    while let Some(mut buffer) = work.inputs.take()? {
                        buffer.read_into(&mut word)?;
                        *counts.entry(String::from_utf8_lossy(&word).into_owned()).or_default() += 1;
                    }
                    for (word, count) in counts {
                        work.outputs.port("out")?.put(format!("{count} {word}").as_bytes())?;
                    }
                    Ok(())
                }))
            })
            .input("in", "words")
            .output("out", "lines"),
        )
        .with(
            "print",
            Kind::new("prints the most frequent", |_| {
                Ok(function(|work| {
                    let (mut lines, mut line) = (Vec::new(), Vec::new());
                    while let Some(mut buffer) = work.inputs.take()? {
                        buffer.read_into(&mut line)?;
                        lines.push(String::from_utf8_lossy(&line).into_owned());
                    }
                    let count = |line: &String| line.split(' ').next().and_then(|count| count.parse::<u32>().ok());
                    lines.sort_by_key(|line| (std::cmp::Reverse(count(line)), line.clone()));
                    println!("unit {}: {}", work.unit.number, lines[..lines.len().min(5)].join(", "));
                    Ok(())
                }))
            })
            .input("in", "lines"),
        )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In a process that the group started, this does not return.
    worker::enter(&kinds());
    let graph = Graph::new("word count")
        .filter("words", "words", 1, Place::Thread)
        .filter("count", "count", 2, Place::Process)
        .filter("print", "print", 1, Place::Thread);
    let graph = graph.stream("words.out", "count.in", 64).dealt(Schedule::Keyed).stream("count.out", "print.in", 128);
    let mut group = Group::start(graph, &kinds(), Launcher::this_program())?;
    for outcome in group.run(std::env::args().skip(1).map(|file| Settings::default().with("file", file)))? {
        outcome.result?;
    }
    Ok(())
}
