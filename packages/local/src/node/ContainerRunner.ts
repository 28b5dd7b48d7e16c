import { readFile } from "node:fs/promises"
import { delimiter } from "node:path"
import type { KubeClient } from "@seatrial/kube"
import { Clock, Deferred, Duration, Effect, Result } from "effect"
import { lastWords } from "./ContainerLog.ts"
import { type ContainerExit, type ContainerProcess, start, stop } from "./ContainerProcess.ts"
import { execute, type ProbeTarget } from "./checkProbe.ts"
import { clusterEnvironment } from "./clusterAccess.ts"
import { seconds } from "./kubeTime.ts"
import { expand, type LocalMount, localWord } from "./localWords.ts"
import { makeMountFolders, mountsOf, type PodFolder } from "./PodFolder.ts"
import type { BoundPod, Container, Terminated } from "./PodObject.ts"
import { PodProblem } from "./PodProblem.ts"
import { podEnvironment } from "./podEnvironment.ts"
import type { ContainerRecord } from "./podStatus.ts"
import { runProbes } from "./runProbes.ts"

/** The local equivalent of a container image. */
export interface LocalImage {
  /**
   * The digest that a registry would report (`sha256:...`). It appears in the pod's status, and pods may refer to the
   * image by it. Absent: the image behaves as if it was never pulled.
   */
  readonly digest?: string
  /** Variables that the image sets. */
  readonly environment?: Readonly<Record<string, string>>
  /** Folders at the beginning of `PATH`. */
  readonly path: ReadonlyArray<string>
  /** Runs if the container has no command. */
  readonly entrypoint?: ReadonlyArray<string>
}

/** The pod of a container. */
export interface ContainerHost {
  readonly kube: KubeClient["Service"]
  readonly images: Readonly<Record<string, LocalImage>>
  readonly pod: BoundPod
  readonly folder: PodFolder
  readonly podIP: string
  readonly hostIP: string
  /** The address of the API server for pods, `https://127.0.0.1:6443`; absent if pods must not find it. */
  readonly apiServer: string | undefined
  /** Memory of one GPU of the node, which an engine would read from the driver. */
  readonly gpuMemoryMiB: number | undefined
  readonly volumes: ReadonlyMap<string, string>
  readonly record: (name: string) => ContainerRecord
  readonly update: (name: string, change: Partial<ContainerRecord>) => Effect.Effect<void>
  readonly event: (type: "Normal" | "Warning", reason: string, message: string) => Effect.Effect<void>
  /** Completed with the seconds of the grace period when the pod must end. */
  readonly terminating: Deferred.Deferred<number>
}

const backOff = { first: Duration.toMillis("1 second"), most: Duration.toMillis("5 minutes"), forgotten: Duration.toMillis("10 minutes") }
const configAgain = "5 seconds"

const imageOf = (images: Readonly<Record<string, LocalImage>>, image: string): LocalImage | undefined => {
  const prefix = Object.keys(images)
    .filter((name) => image === name || (image.startsWith(name) && /^[:@/]/.test(image.slice(name.length))))
    .sort((left, right) => right.length - left.length)[0]
  const localImage = prefix === undefined ? undefined : images[prefix]
  const [, digest] = image.split("@")
  return digest === undefined || localImage?.digest === undefined || digest === localImage.digest ? localImage : undefined
}

/** The image ID in the status of a container, in the format of a container runtime. */
const imageIdOf = (image: string, { digest }: LocalImage): string => (digest === undefined ? "" : `${image.replace(/(?:@[^@]*|:[^/:@]*)$/u, "")}@${digest}`)

const asksForGpus = ({ resources }: Container) => Object.keys(resources?.limits ?? {}).some((name) => name.endsWith("/gpu"))

/** The variables of a container, from the node, its image, and its pod. */
const environmentOf = (
  host: ContainerHost,
  container: Container,
  image: LocalImage,
  mounts: ReadonlyArray<LocalMount>,
  podVariables: ReadonlyMap<string, string>
) => ({
  HOME: host.folder.home,
  TMPDIR: host.folder.temporary,
  LANG: "C.UTF-8",
  ...(host.gpuMemoryMiB === undefined || !asksForGpus(container) ? {} : { SEATRIAL_SIMULATED_GPU_BYTES: String(host.gpuMemoryMiB * 2 ** 20) }),
  ...image.environment,
  ...clusterEnvironment(host, mounts),
  ...Object.fromEntries([...podVariables].map(([name, value]) => [name, localWord(value, mounts)])),
  PATH: [...image.path, process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin"].join(delimiter),
  // When this agent dies, the standard input of the container closes and the container stops.
  SEATRIAL_PARENT_PIPE: "1"
})

const resolve = Effect.fnUntraced(function* (host: ContainerHost, container: Container) {
  const { args = [], image: imageName = "" } = container
  const image = imageOf(host.images, imageName)
  if (image === undefined) {
    return yield* new PodProblem({
      reason: "ErrImagePull",
      message: `this node runs local programs and has no program for image "${imageName}"; it has ${Object.keys(host.images).join(", ")}`
    })
  }
  const mounts = mountsOf(container, host.volumes, host.folder)
  const podVariables = yield* podEnvironment(host.kube, host.pod, container, host)
  const local = (word: string) => localWord(word, mounts)
  const command = container.command ?? image.entrypoint ?? []
  if (command.length === 0) return yield* new PodProblem({ reason: "CreateContainerError", message: "no command specified" })
  const target: ProbeTarget = {
    container,
    podIP: host.podIP,
    environment: environmentOf(host, container, image, mounts, podVariables),
    workingDirectory: container.workingDir === undefined ? host.folder.home : local(container.workingDir),
    words: (words) => words.map(local)
  }
  yield* makeMountFolders(host.pod, container, host.volumes)
  return { imageId: imageIdOf(imageName, image), target, words: [...command, ...args].map((word) => local(expand(word, podVariables))) }
})

const messageOf = Effect.fnUntraced(function* (host: ContainerHost, container: Container, exitCode: number) {
  const written = yield* Effect.promise(() => readFile(host.folder.terminationMessage(container.name), "utf8").catch(() => ""))
  if (written !== "") return written.slice(0, 4096)
  if (exitCode === 0 || container.terminationMessagePolicy !== "FallbackToLogsOnError") return undefined
  return yield* Effect.promise(() => lastWords(host.folder.log(container.name)))
})

const terminated = Effect.fnUntraced(function* (host: ContainerHost, container: Container, exit: ContainerExit, startedAt: number) {
  const message = yield* messageOf(host, container, exit.exitCode)
  const result: Terminated = {
    exitCode: exit.exitCode,
    ...(exit.signal === undefined ? {} : { signal: exit.signal }),
    reason: exit.exitCode === 0 ? "Completed" : "Error",
    ...(message === undefined || message === "" ? {} : { message }),
    startedAt: seconds(startedAt),
    finishedAt: seconds(yield* Clock.currentTimeMillis)
  }
  return result
})

const end = Effect.fnUntraced(function* (target: ProbeTarget, process: ContainerProcess, graceSeconds: number) {
  const began = yield* Clock.currentTimeMillis
  const preStop = target.container.lifecycle?.preStop
  const before = preStop?.exec?.command === undefined ? Effect.sleep(`${preStop?.sleep?.seconds ?? 0} seconds`) : execute(target, preStop.exec.command)
  if (preStop !== undefined) {
    // The hook is abandoned if the container ends by itself.
    yield* before.pipe(Effect.raceFirst(Deferred.await(process.exited)), Effect.timeoutOption(`${graceSeconds} seconds`), Effect.ignore)
  }
  const left = Math.max(0, began + graceSeconds * 1_000 - (yield* Clock.currentTimeMillis))
  return yield* stop(process, left)
})

/** One run, from the start of the process to its end. */
const runOnce = Effect.fnUntraced(function* (host: ContainerHost, container: Container) {
  const { imageId, target, words } = yield* resolve(host, container)
  const name = container.name
  const process = yield* start({ container: name, words, environment: target.environment, workingDirectory: target.workingDirectory }, host.folder)
  const startedAt = yield* Clock.currentTimeMillis
  yield* host.update(name, { phase: { _tag: "Running", startedAt: seconds(startedAt) }, imageId, started: false, ready: false })
  let reportedText = ""
  const probing = runProbes(target, {
    started: host.update(name, { started: true }),
    ready: (ready) => (host.record(name).ready === ready ? Effect.void : host.update(name, { ready })),
    unhealthy: (kind, message) =>
      Effect.suspend(() => {
        // An engine that starts slowly fails its startup probe every second. Only the first failure and new messages
        // are recorded.
        const text = `${kind} probe failed: ${message}`
        if (text === reportedText) return Effect.void
        reportedText = text
        return host.event("Warning", "Unhealthy", text)
      })
  })
  const exited = Effect.as(Deferred.await(process.exited), undefined)
  const stopped = Effect.map(Deferred.await(host.terminating), (grace) => ({ grace, why: "the pod is deleted" }))
  const unhealthy = Effect.map(probing, (why) => ({ grace: host.pod.spec.terminationGracePeriodSeconds ?? 30, why }))
  const kill = yield* Effect.raceAll([exited, stopped, unhealthy])
  if (kill !== undefined) {
    yield* host.event("Normal", "Killing", `Stopping container ${name}: ${kill.why}`)
    yield* host.update(name, { ready: false })
  }
  const exit = yield* kill === undefined ? Deferred.await(process.exited) : end(target, process, kill.grace)
  const result = yield* terminated(host, container, exit, startedAt)
  return { result, ranFor: (yield* Clock.currentTimeMillis) - startedAt }
}, Effect.scoped)

/** Waits, at most until the pod must end. */
const pause = (host: ContainerHost, duration: Duration.Input) => Effect.raceFirst(Effect.sleep(duration), Effect.asVoid(Deferred.await(host.terminating)))

/** Reports why a container cannot be created, and waits before the next attempt. */
const reportProblem = Effect.fnUntraced(function* (host: ContainerHost, name: string, { message, reason }: PodProblem) {
  yield* host.event("Warning", "Failed", `Error: ${reason}: ${message}`)
  yield* host.update(name, { phase: { _tag: "Waiting", reason, message }, ready: false, started: false })
  yield* pause(host, configAgain)
  if (reason !== "ErrImagePull") return
  // The images of a node never change while it runs.
  yield* host.update(name, { phase: { _tag: "Waiting", reason: "ImagePullBackOff", message } })
  yield* Deferred.await(host.terminating)
})

/** The result of a run, also of one whose process could not be started. */
const resultOf = Effect.fnUntraced(function* (outcome: Result.Result<{ readonly result: Terminated }, PodProblem>) {
  if (Result.isSuccess(outcome)) return outcome.success.result
  const at = seconds(yield* Clock.currentTimeMillis)
  const result: Terminated = { exitCode: 128, reason: "StartError", message: outcome.failure.message, startedAt: at, finishedAt: at }
  return result
})

/** Runs a container by the restart policy of its pod until no restart is due or the pod ends. */
export const runContainer = Effect.fnUntraced(function* (host: ContainerHost, container: Container, policy: string): Effect.fn.Return<void> {
  const { name } = container
  const ended = Deferred.isDone(host.terminating)
  let delay = backOff.first
  while (!(yield* ended)) {
    const outcome = yield* runOnce(host, container).pipe(Effect.result)
    if (Result.isFailure(outcome) && outcome.failure.reason !== "RunContainerError") {
      yield* reportProblem(host, name, outcome.failure)
      continue
    }
    const result = yield* resultOf(outcome)
    const again = policy === "Always" || (policy === "OnFailure" && result.exitCode !== 0)
    if (!again || (yield* ended)) {
      yield* host.update(name, { phase: { _tag: "Terminated", terminated: result }, ready: false, started: false, over: true })
      return
    }
    if (Result.isSuccess(outcome) && outcome.success.ranFor > backOff.forgotten) delay = backOff.first
    const message = `back-off ${delay / 1_000}s restarting failed container=${name} pod=${host.pod.metadata.name}`
    yield* host.update(name, { phase: { _tag: "Waiting", reason: "CrashLoopBackOff", message }, last: result, ready: false, started: false })
    yield* host.event("Warning", "BackOff", `Back-off restarting failed container ${name}`)
    yield* pause(host, delay)
    delay = Math.min(delay * 2, backOff.most)
    if (!(yield* ended)) yield* host.update(name, { restartCount: host.record(name).restartCount + 1 })
  }
})
