import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join, normalize } from "node:path"
import type { KubeClient } from "@seatrial/kube"
import { Effect } from "effect"
import type { LocalMount } from "./localWords.ts"
import { type BoundPod, type Container, namespaceOf, uidOf, type Volume } from "./PodObject.ts"
import { PodProblem } from "./PodProblem.ts"
import { readFiles } from "./PodSources.ts"
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

/** The pod whose volumes are created. */
interface VolumeOwner {
  readonly kube: KubeClient["Service"]
  readonly state: string
  readonly pod: BoundPod
  readonly addresses: PodIps
}

/** The files of a volume, by path. */
const volumeFiles = Effect.fnUntraced(function* ({ addresses, kube, pod }: VolumeOwner, { configMap, projected, secret }: Volume) {
  const files = new Map<string, string | Buffer>()
  for (const source of projected?.sources ?? []) {
    for (const [path, content] of yield* readProjected(kube, pod, source, addresses)) files.set(path, content)
  }
  const reference =
    secret !== undefined
      ? ({ ...secret, kind: "secret", name: secret.secretName } as const)
      : configMap !== undefined
        ? ({ ...configMap, kind: "configmap" } as const)
        : undefined
  if (reference === undefined) return files
  for (const [path, content] of yield* readFiles(kube, namespaceOf(pod), reference)) files.set(path, content)
  return files
})

/** The folder of a volume that is not a folder of the host. */
const volumeFolder = ({ pod, state }: VolumeOwner, { name, persistentVolumeClaim: claim }: Volume): string =>
  claim === undefined
    ? inside(join(podFolder(state, uidOf(pod)).path, "volumes"), name)
    : inside(join(state, "volumes"), `${namespaceOf(pod)}-${claim.claimName}`)

/** Creates a volume and its files. Returns its path. */
const materialize = Effect.fnUntraced(function* (owner: VolumeOwner, volume: Volume) {
  if (volume.hostPath !== undefined) return volume.hostPath.path
  const path = volumeFolder(owner, volume)
  yield* disk(`volume ${volume.name}`, () => mkdir(path, { recursive: true, mode: 0o700 }))
  if (volume.persistentVolumeClaim !== undefined) return path
  for (const [file, content] of yield* volumeFiles(owner, volume)) {
    yield* disk(`volume ${volume.name}`, () => writeWhole(inside(path, file), content))
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
  for (const volume of pod.spec.volumes ?? []) volumes.set(volume.name, yield* materialize({ kube, state, pod, addresses }, volume))
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

/** Whether a claim is mounted read-only in the pod. */
const isReadOnly = ({ spec }: BoundPod, volume: string): boolean => spec.volumes?.find(({ name }) => name === volume)?.persistentVolumeClaim?.readOnly === true

const isFolder = (path: string) =>
  Effect.promise(() =>
    stat(path)
      .then((found) => found.isDirectory())
      .catch(() => false)
  )

/**
 * Creates the folders of the container's mounts. As on a real node, a `subPath` that is missing from a read-only volume
 * cannot be created.
 */
export const makeMountFolders = Effect.fnUntraced(function* (
  pod: BoundPod,
  container: Container,
  volumes: ReadonlyMap<string, string>
): Effect.fn.Return<void, PodProblem> {
  for (const { name, subPath } of container.volumeMounts ?? []) {
    const volume = volumes.get(name)
    if (volume === undefined) continue
    const folder = subPath === undefined ? volume : inside(volume, subPath)
    if (subPath === undefined || !isReadOnly(pod, name)) yield* Effect.promise(() => mkdir(folder, { recursive: true }).catch(() => {}))
    else if (!(yield* isFolder(folder))) {
      const message = `failed to create subPath directory for volumeMount "${name}" of container "${container.name}"`
      return yield* new PodProblem({ reason: "CreateContainerConfigError", message })
    }
  }
})

/** Removes the folder of the pod. Persistent volume claims stay. */
export const removeFolder = (state: string, uid: string): Effect.Effect<void> =>
  Effect.promise(() => rm(podFolder(state, uid).path, { recursive: true, force: true, maxRetries: 3 }).catch(() => {}))
