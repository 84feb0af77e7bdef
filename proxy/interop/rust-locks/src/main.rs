//! rslock, unmodified, that takes the daemon for one Redis.

use rslock::{LockError, LockManager};
use std::io::BufRead;
use std::time::Duration;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LEASE: Duration = Duration::from_secs(20);
const LONGER: Duration = Duration::from_secs(25);

fn ask(what: &str) -> Outcome {
    println!("wait {what}");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if line.trim_end() != what {
        return Err(format!("the driver did not answer {what}").into());
    }
    Ok(())
}

/// Succeeds if another client holds the lock.
async fn refused(manager: &LockManager, name: &str) -> Outcome {
    match manager.lock(name, LEASE).await {
        Err(LockError::Unavailable) => Ok(()),
        other => Err(format!("a held lock gives {other:?}").into()),
    }
}

fn manager() -> Result<LockManager, Box<dyn std::error::Error>> {
    let mut manager = LockManager::new(vec![format!("redis://{}/", std::env::var("REDLOCKD_ADDR")?)]);
    manager.set_retry(1, Duration::from_millis(1));
    Ok(manager)
}

async fn story() -> Outcome {
    let key = std::env::var("REDLOCKD_KEY")?;
    let (a, b, c) = (format!("{key}:a"), format!("{key}:b"), format!("{key}:c"));
    let (a, b, c) = (a.as_str(), b.as_str(), c.as_str());
    let (one, two) = (manager()?, manager()?);

    let lock = one.lock(a, LEASE).await?;
    println!("ok acquire");
    refused(&two, a).await?;
    println!("ok contention");
    let lock = one.extend(&lock, LONGER).await?;
    if lock.validity_time < 20_000 {
        return Err(format!("extended to {} ms", lock.validity_time).into());
    }
    refused(&two, a).await?;
    println!("ok extend");
    one.unlock(&lock).await;
    let lock = two.lock(a, LEASE).await?;
    two.unlock(&lock).await;
    println!("ok release");

    let late = one.lock(b, Duration::from_secs(1)).await?;
    let mut patient = manager()?;
    patient.set_retry(400, Duration::from_millis(100));
    let next = patient.lock(b, LEASE).await?;
    one.unlock(&late).await;
    refused(&one, b).await?;
    patient.unlock(&next).await;
    println!("ok expiry");

    let lock = one.lock(c, LEASE).await?;
    ask("kill")?;
    refused(&two, c).await?;
    let lock = one.extend(&lock, LONGER).await?;
    one.unlock(&lock).await;
    let lock = two.lock(c, LEASE).await?;
    two.unlock(&lock).await;
    println!("ok killed");
    Ok(())
}

fn main() -> Outcome {
    let package = include_str!("../Cargo.toml");
    println!("library {}", package.split("\"=").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("?"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Err(error) = runtime.block_on(story()) {
        println!("fail rslock {error}");
        return Err(error);
    }
    drop(runtime); // and with it the tasks of the connections
    ask("gone")?;
    println!("ok close");
    Ok(())
}
