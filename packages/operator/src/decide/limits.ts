// Deadlines and patience of the phases, in milliseconds. Those of booting and benchmarking are the host class's own. None counts time in which no operator led.

/** From the start of screening until an unreachable hub fails the run. */
export const hubDeadline = 10 * 60_000
/** How long an image may be impossible to pull. */
export const imageDeadline = 2 * 60_000
/** How long a custom resource stays as it is between two writes of its status while its run is at work. */
export const statusPause = 1_000
/** The least time between two records of a run's progress for the API while it is at work. */
export const progressPause = 2_000
/** And for each run that waits for a pass: whoever is at work goes first, and what is shown follows. */
export const statusPauseEach = 100
/** However many wait. */
export const statusPauseMost = 20_000
/** From so many on, what a run went through between two writes of its status is told by one event. */
export const manyWait = 32
/** How long a download's pod may not be there, or be prepared by its node, before that is told of. */
export const fetchStart = 60_000
/** After which a download that failed for what serves is tried again. */
export const fetchAgain = 10 * 60_000
/** How often a download is asked how it goes on. */
export const fetchLook = 10_000
/** From the start of provisioning until a pod that has a node must have started its container. */
export const provisioningDeadline = 30 * 60_000
/** From the start of provisioning until the weights must be on a node that keeps copies. */
export const copyDeadline = 6 * 3_600_000
/** How long a pod may find no node before the run looks whether its capacity is lost. */
export const schedulingPatience = 15_000
/** How often Kueue is asked why it holds a pod back: what it says changes without the pod. */
export const admissionLook = 20_000
/** How long a node may be silent before its pods count as lost. */
export const nodePatience = 60_000
/** From when a ready engine waits in activating until some gateway must have reached it. */
export const gatewayDeadline = 2 * 60_000
/** So many runs that wait in the same queue are looked at whenever that may move. */
export const lookedAtOnce = 16
/** How often those behind them are told how many go first. */
export const placeLook = 10 * 60_000
/** From the withdrawal of an endpoint until its pod may go where no request is under way: gateways have heard of it by then. */
export const drainTime = 10_000
/** From the withdrawal of an endpoint until its pod goes whatever is under way: as long as gateways let a stream be by default. */
export const drainLimit = 3_600_000
/** How often a draining engine's requests are counted. */
export const drainLook = 5_000
/** How late gateways may tell of a request. */
export const idleSlack = 10_000
/** How long an engine that is ready stays although nobody asks: callers were told to come back within it. */
export const wokenHold = 15_000
/** How often the requests of a model are counted that nobody asked for lately. */
export const idleLook = 30_000
/** How long a verified candidate that does not serve keeps its GPUs where nothing else was asked. */
export const candidateHold = 900_000
/** Restarts of a container after which its start has failed, unless its node was why it ended last. */
export const bootRestarts = 2
/** Times that checks, measurements and the benchmark are tried in place. */
export const trialAttempts = 3

/** Pause after the nth failure of background work: doubling from one second to half a minute. */
export const backoff = (attempts: number): number => Math.min(30_000, 1_000 * 2 ** Math.min(Math.max(0, attempts - 1), 10))
