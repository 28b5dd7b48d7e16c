import { Option } from "effect"
import { referenceLabel } from "../../src/resources/objectNames.ts"
import { hostClass, revision } from "../observations.ts"
import { makeStage } from "./stage.ts"

export type Stage = ReturnType<typeof makeStage>

const printed = JSON.stringify({ logprobs: [[-1.5]], continuations: [], transformers: "5.19.0", torch: "2.13.0" })
export const computed = { sequences: [{ ids: [1, 2], logprobs: [-1.5] }], drawn: 0, continuations: [], transformers: "5.19.0", torch: "2.13.0" }

export const jobsOf = ({ kube }: Stage) => kube.names("Job").filter((name) => name.startsWith("reference-"))
/** The Job has a pod with that status. */
const hasPod = (stage: Stage, job: string, nodeName: string | undefined, status: object, since = 0) =>
  stage.kube.add("Pod", `${job}-x`, {
    metadata: { labels: { [referenceLabel]: job }, creationTimestamp: new Date(since).toISOString() },
    spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
    status
  })
/** No node has room for the pod of the Job, which was created at that time. */
export const waitsForNode =
  (stage: Stage, since = () => 0) =>
  (job: string) =>
    hasPod(stage, job, undefined, { phase: "Pending" }, since())
/** The Job computes. */
export const computes = (stage: Stage) => (job: string) => hasPod(stage, job, "cpu-1", { phase: "Running" })
/** The pod of the Job ends like this. */
const ends = (stage: Stage, phase: string, terminated: object) => (job: string) => {
  const containerStatuses = [{ name: "reference", ready: false, restartCount: 0, state: { terminated } }]
  hasPod(stage, job, "cpu-1", { phase, containerStatuses })
  stage.kube.setStatus("Job", job, { conditions: [{ type: phase === "Succeeded" ? "Complete" : "Failed", status: "True" }] })
}
export const succeeds = (stage: Stage) => ends(stage, "Succeeded", { exitCode: 0 })
export const fails = (stage: Stage, exitCode: number, reason: string) => ends(stage, "Failed", { exitCode, reason })

/** A stage whose host class computes references. */
export const stageWith = (referenceJob: object = { image: "python:1", waitSeconds: 600 }, facts = revision.facts) => {
  const stage = makeStage(Option.none(), facts)
  const { gpu_count: gpuCount, name, runtimes } = hostClass
  const spec = { runtimes, gpuPool: hostClass.gpu_pool, gpuCount, gpuMemoryBytes: 2 ** 30, pricePerGpuHour: "1", bootDeadlineSeconds: 60, simulated: true }
  stage.kube.add("HostClass", name, { spec: { ...spec, referenceJob } })
  stage.setReferenceStory(computes(stage))
  stage.kube.setLog(() => `a warning of a library\n${printed}\n`)
  return stage
}
export const serves = (stage: Stage) => () => stage.mirrored()?.message === "Serves."
