// Deadlines and intervals of the phases, in milliseconds. The deadlines of booting and benchmarking are set by the host
// class. Time without a leading operator does not count.

/** From the first failed attempt to read the hub to the last, which fails the run. */
export const hubDeadline = 10 * 60_000
/** How long an image may fail to pull. */
export const imageDeadline = 2 * 60_000
/** How long the API server may refuse an object of a run, for example because of a quota. */
export const refusalDeadline = 10 * 60_000
/** The same for a run for which the serving revision gave up its GPUs. */
export const refusalDeadlineOfReplacement = 2 * 60_000
/** The shortest time between two status writes of a run in progress. */
export const statusPause = 1_000
/** The shortest time between two progress records of a run in progress. */
export const progressPause = 2_000
/** Added for each run that waits for a pass: work goes first, and status follows. */
export const statusPauseEach = 100
/** The upper limit of the pause, however many runs wait. */
export const statusPauseMost = 20_000
/** Number of waiting runs from which one event covers all phases that a run passed between two status writes. */
export const manyWait = 32
/** How long a download's pod may be missing or in preparation before the message mentions it. */
export const fetchStart = 60_000
/** The pause before a failed download for a serving revision is retried. */
export const fetchAgain = 10 * 60_000
/** How often the progress of a download is read. */
export const fetchInterval = 10_000
/** How long the computation of a reference may take, from the start of its pod. */
export const referenceDeadline = 2 * 3_600_000
/** How long the Job of a reference may exist until it has ended. Its pod may wait for a node, and others for its place. */
export const referenceJobDeadline = 3 * 3_600_000
/** How long the pod of a reference may lack a node until its Job gives its place to a run that waits for one. */
export const referencePatience = 5 * 60_000
/** How long the runs of such a Job go after others. */
export const referenceRest = 15 * 60_000
/** How long a trial waits for a reference whose pod has no node. */
export const referencePlacement = 30_000
/** How long Kubernetes keeps the Job of a reference after its end, unless the operator deletes it earlier. */
export const referenceKept = 3_600_000
/** The pause before the result of a reference is read again, if the node did not return it. */
export const referenceAgain = 30_000
/** From the start of provisioning until the container of a scheduled pod must have started. */
export const provisioningDeadline = 30 * 60_000
/** From the start of provisioning until the weights must be on a node that keeps copies. */
export const copyDeadline = 6 * 3_600_000
/** How long a pod may be unschedulable before the run checks whether its capacity is lost. */
export const schedulingPatience = 15_000
/** How often Kueue is asked why it holds a pod back. Its answer changes without a change of the pod. */
export const admissionInterval = 20_000
/** How long a node may be unresponsive before its pods count as lost. */
export const nodePatience = 60_000
/** From when a ready engine waits in activating until some gateway must have reached it. */
export const gatewayDeadline = 2 * 60_000
/** Number of runs of a queue that get a pass when the queue may move. */
export const maxQueueWakeUps = 16
/** How often the other runs of the queue update their position. */
export const placeInterval = 10 * 60_000
/**
 * From the withdrawal of an endpoint until an engine without requests may be deleted. By then all gateways know of the
 * withdrawal.
 */
export const drainTime = 10_000
/**
 * From the withdrawal of an endpoint until its pod is deleted despite open requests: the gateways' default limit for a
 * stream.
 */
export const drainLimit = 3_600_000
/** How often the requests of a draining engine are counted. */
export const drainInterval = 5_000
/** The time between two passes over a model that moves to a new revision, engine by engine. */
export const moveInterval = 3_000
/**
 * How long an engine of a new revision must have been ready before one of the earlier revision leaves for it: it may
 * fail requests.
 */
export const provenTime = 10_000
/** Engines beyond the wanted number during such a move, unless the host class says otherwise. */
export const maxSurgeByDefault = 1
/**
 * How strong the evidence must be that a new revision fails more requests, as a power of ten: a chance of 1 in 10,000
 * if it does not.
 */
export const evidenceToMoveBack = 4
/** The longest delay with which gateways report a request. */
export const idleSlack = 10_000
/** How long a ready engine stays without requests. Callers of a waking model were asked to retry within this time. */
export const wokenHold = 15_000
/** How often the requests of a model without recent requests are counted. */
export const idleInterval = 30_000
/** How often a run or engine checks whether its organization has funds again. */
export const fundingInterval = 30_000
/** How often a serving model checks whether its organization's balance is used up. */
export const usedUpInterval = 5 * 60_000
/** How long a verified candidate that does not serve keeps its GPUs by default. */
export const candidateHold = 900_000
/** Restarts of a container after which its start has failed, unless its node caused the last end. */
export const bootRestarts = 2
/** Attempts of checks, measurements and the benchmark in place. */
export const trialAttempts = 3

/** Pause after the nth failure of background work. It doubles from one second to 30 seconds. */
export const backoff = (attempts: number): number => Math.min(30_000, 1_000 * 2 ** Math.min(Math.max(0, attempts - 1), 10))
