//! The proxy that serves now, and its connections, which stay when it is replaced by one with other settings.

use std::{
    convert::Infallible,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    followed::Followed,
    front::{Front, REQUEST_TIMEOUT},
    input::LONGEST_HEAD,
    proxy::{Order, Proxy},
};

/// Serves connections by one proxy after the other. What was asked of one is answered by it.
#[derive(Debug)]
pub struct Current {
    proxy: RwLock<Arc<Proxy>>,
    /// How often it was replaced: one load tells a connection whether it has the proxy of now.
    generation: AtomicU64,
}

/// How long a proxy that stops waits for requests under way.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

impl Current {
    /// Begins with this one.
    pub fn new(proxy: Arc<Proxy>) -> Arc<Current> {
        Arc::new(Current { proxy: RwLock::new(proxy), generation: AtomicU64::new(0) })
    }

    /// The one that serves now.
    pub fn proxy(&self) -> Arc<Proxy> {
        self.proxy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests that are looked at from now on are this one's.
    pub fn replace(&self, proxy: Proxy) {
        let mut place = self.proxy.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(proxy);
        // Pairs with the Acquire in `generation`; the lock is held still.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Which one it is.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Serves connections until it is told to stop.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, mut orders: watch::Receiver<Order>) {
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                order = orders.wait_for(|order| *order == Order::Stop) => {
                    // Whoever gave orders is gone: so is the proxy.
                    drop(order);
                    break;
                }
            };
            let Ok((stream, _)) = accepted else {
                // Too many connections: some end.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            self.clone().attend(stream, &graceful);
        }
        drop(listener);
        let _ = tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await;
    }

    fn attend(self: Arc<Self>, stream: TcpStream, graceful: &GracefulShutdown) {
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).max_buf_size(LONGEST_HEAD);
        if self.proxy().cache.is_none() {
            let service = service_fn(move |request| {
                let proxy = self.proxy();
                async move { Ok::<_, Infallible>(proxy.answer(request).await) }
            });
            builder.header_read_timeout(REQUEST_TIMEOUT);
            let watched = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
            // A client that breaks off is no matter of this proxy's.
            tokio::spawn(async move { _ = watched.await });
            return;
        }
        let (front, ended) = Front::new(stream, self.clone());
        let service = service_fn(move |request| {
            let (proxy, ended) = (self.proxy(), ended.clone());
            async move { Ok::<_, Infallible>(proxy.answer(request).await.map(|body| Followed::new(body, ended))) }
        });
        // The front looks after the time that requests take.
        builder.header_read_timeout(None);
        let watched = graceful.watch(builder.serve_connection(front, service));
        tokio::spawn(async move { _ = watched.await });
    }
}
