//! The agent's gRPC services: one launcher, one job.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rlaunch_control::v1::agent_server::Agent;
use rlaunch_control::v1::worker_service_server::WorkerService;
use rlaunch_control::v1::{
    BindReply, BindRequest, CompareReply, CompareRequest, InstallChunk, InstallReply,
    MakeDirectoriesReply, MakeDirectoriesRequest, OpenMasterReply, OpenMasterRequest, PreloadChunk,
    PreloadReply, ProveMasterReply, ProveMasterRequest, ReapReply, ReapRequest, SnapshotReply,
    SnapshotRequest, StatusReply, StatusRequest, SurveyReply, SurveyRequest, ToAgent,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tonic::{Request, Response, Status, Streaming};

use crate::cores::{self, Claims};
use crate::job::{self, Context, JobReport, KeeperLink, outgoing};
use crate::keeper::KeeperEnd;
use crate::master::Master;
use crate::{directories, install, master, preload, reap, snapshot, survey};

pub(crate) struct AgentService {
    state: Mutex<State>,
    report: Arc<Mutex<JobReport>>,
    job_ended: Arc<Notify>,
}

struct State {
    /// Until a job takes it.
    keeper: Option<KeeperLink>,
    job: Option<JoinHandle<()>>,
    /// Directory of the Python module, once surveyed or installed.
    bundle: Option<PathBuf>,
    /// The held port and the probe's listener, to the end of the job.
    master: Option<Master>,
    /// The cores of the ranks, until the job takes them.
    claims: Claims,
}

impl AgentService {
    /// Inside the runtime.
    pub(crate) fn new(keeper: KeeperEnd) -> io::Result<Self> {
        let keeper = Some(KeeperLink::new(keeper)?);
        Ok(Self {
            state: Mutex::new(State {
                keeper,
                job: None,
                bundle: None,
                master: None,
                claims: Claims::new(),
            }),
            report: Arc::default(),
            job_ended: Arc::default(),
        })
    }

    /// When the job is over and the launcher has nothing more to hear.
    pub(crate) async fn job_ended(&self) {
        self.job_ended.notified().await;
    }

    /// When no job has come for so long; never once one has.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        tokio::time::sleep(limit).await;
        if self.state().keeper.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the job, if any, has cleaned up.
    pub(crate) async fn settle(&self) {
        let job = self.state().job.take();
        if let Some(job) = job {
            // A job that panicked: the keeper ends the ranks as this process ends.
            job.await.ok();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a panicking handler left is whole: each change is one assignment.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl Agent for AgentService {
    type RunStream = job::OutgoingStream;

    async fn survey(
        &self,
        request: Request<SurveyRequest>,
    ) -> Result<Response<SurveyReply>, Status> {
        let reply = survey::answer(request.into_inner()).await?;
        if !reply.bundle_path.is_empty() {
            self.state().bundle = Some(PathBuf::from(&reply.bundle_path));
        }
        Ok(Response::new(reply))
    }

    async fn install(
        &self,
        request: Request<Streaming<InstallChunk>>,
    ) -> Result<Response<InstallReply>, Status> {
        let path = install::receive(request.into_inner()).await?;
        let bundle_path = path.to_string_lossy().into_owned();
        self.state().bundle = Some(path);
        Ok(Response::new(InstallReply { bundle_path }))
    }

    async fn make_directories(
        &self,
        request: Request<MakeDirectoriesRequest>,
    ) -> Result<Response<MakeDirectoriesReply>, Status> {
        Ok(Response::new(directories::make(request.into_inner())))
    }

    async fn bind(&self, request: Request<BindRequest>) -> Result<Response<BindReply>, Status> {
        // Earlier ones are given back first: the same may be asked for again.
        self.state().claims = Claims::new();
        let (claims, reply) = cores::choose(request.get_ref());
        self.state().claims = claims;
        Ok(Response::new(reply))
    }

    async fn open_master(
        &self,
        request: Request<OpenMasterRequest>,
    ) -> Result<Response<OpenMasterReply>, Status> {
        let request = request.into_inner();
        // An earlier one gives its port back first: the same may be asked for again.
        self.state().master = None;
        let (master, reply) = Master::open(&request).map_err(|error| error.into_status())?;
        self.state().master = Some(master);
        Ok(Response::new(reply))
    }

    async fn prove_master(
        &self,
        request: Request<ProveMasterRequest>,
    ) -> Result<Response<ProveMasterReply>, Status> {
        Ok(Response::new(master::prove(request.into_inner()).await))
    }

    async fn compare(
        &self,
        request: Request<CompareRequest>,
    ) -> Result<Response<CompareReply>, Status> {
        Ok(Response::new(preload::compare(request.into_inner()).await?))
    }

    async fn preload(
        &self,
        request: Request<Streaming<PreloadChunk>>,
    ) -> Result<Response<PreloadReply>, Status> {
        Ok(Response::new(preload::receive(request.into_inner()).await?))
    }

    async fn reap(&self, request: Request<ReapRequest>) -> Result<Response<ReapReply>, Status> {
        Ok(Response::new(reap::answer(request.into_inner()).await?))
    }

    async fn snapshot(
        &self,
        request: Request<SnapshotRequest>,
    ) -> Result<Response<SnapshotReply>, Status> {
        let reply = snapshot::answer(request.into_inner()).await?;
        Ok(Response::new(reply))
    }

    async fn run(
        &self,
        request: Request<Streaming<ToAgent>>,
    ) -> Result<Response<Self::RunStream>, Status> {
        let (outgoing, stream) = outgoing();
        let mut state = self.state();
        let keeper = state
            .keeper
            .take()
            .ok_or_else(|| Status::failed_precondition("this agent has had its job already"))?;
        if let Some(master) = &mut state.master {
            master.planning_is_over();
        }
        let bundle = state.bundle.clone();
        let context = Context {
            keeper,
            outgoing,
            bundle,
            report: self.report.clone(),
            claims: std::mem::take(&mut state.claims),
        };
        let job_ended = self.job_ended.clone();
        state.job = Some(tokio::spawn(async move {
            job::run(request.into_inner(), context).await;
            job_ended.notify_one();
        }));
        Ok(Response::new(stream))
    }
}

#[tonic::async_trait]
impl WorkerService for AgentService {
    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusReply>, Status> {
        let report = self
            .report
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(Response::new(report.reply()))
    }
}
