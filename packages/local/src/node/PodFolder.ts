import { mkdir, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join, normalize } from "node:path"
import type { KubeClient } from "@seatrial/kube"
import { Effect } from "effect"
import type { LocalMount } from "./localWords.ts"
import { type BoundPod, type Container, namespaceOf, uidOf, type Volume } from "./PodObject.ts"
import { PodProblem } from "./PodProblem.ts"
import { readSource } from "./PodSources.ts"
import { type PodIps, readProjected } from "./readProjected.ts"

/** The folders of a pod on this machine. */
export interface PodFolder {
  readonly path: string
  /** `HOME`, and the working directory of a container that sets none. */
  readonly home: string
  readonly temporary: string
  readonly log: (container: string) => string
  /** The log of the previous run. */
  readonly previousLog: (container: string) => string
  readonly pidFile: (container: string) => string
  readonly terminationMessage: (container: string) => string
}

export const podFolder = (state: string, uid: string): PodFolder => {
  const path = join(state, "pods", uid)
  return {
    path,
    home: join(path, "home"),
    temporary: join(path, "tmp"),
    log: (container) => join(path, `${container}.log`),
    previousLog: (container) => join(path, `${container}.previous.log`),
    pidFile: (container) => join(path, `${container}.pid`),
    terminationMessage: (container) => join(path, `${container}.termination`)
  }
}

const disk = <A>(what: string, work: () => Promise<A>): Effect.Effect<A, PodProblem> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => new PodProblem({ reason: "CreateContainerError", message: `${what}: ${cause instanceof Error ? cause.message : String(cause)}` })
  })

/** A path from the pod's spec, confined to `folder`. */
const inside = (folder: string, path: string) => join(folder, normalize(`/${path}`))

/** Written to a temporary file and renamed, so that readers see either the old or the new content. */
const writeWhole = async (target: string, content: string | Buffer) => {
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  await writeFile(`${target}.new`, content, { mode: 0o600 })
  await rename(`${target}.new`, target)
}

const materialize = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  state: string,
  pod: BoundPod,
  folder: PodFolder,
  volume: Volume,
  addresses: PodIps
) {
  if (volume.hostPath !== undefined) return volume.hostPath.path
  if (volume.persistentVolumeClaim !== undefined) {
    const path = inside(join(state, "volumes"), `${namespaceOf(pod)}-${volume.persistentVolumeClaim.claimName}`)
    yield* disk(`volume ${volume.name}`, () => mkdir(path, { recursive: true, mode: 0o700 }))
    return path
  }
  const path = inside(join(folder.path, "volumes"), volume.name)
  yield* disk(`volume ${volume.name}`, () => mkdir(path, { recursive: true, mode: 0o700 }))
  for (const source of volume.projected?.sources ?? []) {
    for (const [file, content] of yield* readProjected(kube, pod, source, addresses)) {
      yield* disk(`volume ${volume.name}`, () => writeWhole(inside(path, file), content))
    }
  }
  const source = volume.secret ?? volume.configMap
  if (source === undefined) return path
  const name = "secretName" in source ? source.secretName : source.name
  const kind = volume.secret === undefined ? "configmap" : "secret"
  const data = yield* readSource(kube, kind, namespaceOf(pod), name, source.optional)
  for (const { key, path: file } of source.items ?? [...data.keys()].map((key) => ({ key, path: key }))) {
    const value = data.get(key)
    if (value === undefined) {
      if (source.optional === true) continue
      return yield* new PodProblem({ reason: "CreateContainerConfigError", message: `references non-existent ${kind} key: ${key}` })
    }
    const target = inside(path, file)
    yield* disk(`volume ${volume.name}`, () => writeWhole(target, value))
  }
  return path
})

/**
 * Creates the folders and volumes of the pod and returns the path of each volume. Another call only updates the content
 * of secrets, config maps and tokens.
 */
export const prepare = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  state: string,
  pod: BoundPod,
  addresses: PodIps
): Effect.fn.Return<ReadonlyMap<string, string>, PodProblem> {
  const folder = podFolder(state, uidOf(pod))
  yield* disk("pod folder", async () => {
    await mkdir(folder.home, { recursive: true, mode: 0o700 })
    await mkdir(folder.temporary, { recursive: true, mode: 0o700 })
  })
  const volumes = new Map<string, string>()
  for (const volume of pod.spec.volumes ?? []) volumes.set(volume.name, yield* materialize(kube, state, pod, folder, volume, addresses))
  return volumes
})

/**
 * The mounts of the container as local paths. `readOnly` has no effect without mount namespaces: the process may write
 * wherever its account may.
 */
export const mountsOf = (container: Container, volumes: ReadonlyMap<string, string>, folder: PodFolder): ReadonlyArray<LocalMount> => [
  ...(container.volumeMounts ?? []).flatMap(({ name, mountPath, subPath }) => {
    const volume = volumes.get(name)
    return volume === undefined ? [] : [{ mountPath, local: subPath === undefined ? volume : inside(volume, subPath) }]
  }),
  { mountPath: container.terminationMessagePath ?? "/dev/termination-log", local: folder.terminationMessage(container.name) }
]

/** Removes the folder of the pod. Persistent volume claims stay. */
export const removeFolder = (state: string, uid: string): Effect.Effect<void> =>
  Effect.promise(() => rm(podFolder(state, uid).path, { recursive: true, force: true, maxRetries: 3 }).catch(() => {}))
