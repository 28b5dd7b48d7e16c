import { Job, KubeClient, layerKubeClient, Pod, Secret } from "@seatrial/kube"
import { deploymentLabel, HostClassResource } from "@seatrial/operator"
import { Config, Context, Effect, Layer } from "effect"

/** The Kubernetes API that a kubeconfig names. */
export const openCluster = (kubeconfig: string) =>
  Effect.map(Effect.orDie(Layer.build(layerKubeClient({ kubeconfig: Config.succeed(kubeconfig) }))), (services) => Context.get(services, KubeClient))

const namespace = "seatrial"

/** What the cluster holds of runs beside their records: `Kind dep_...`, in order. */
export const objectsOfRuns = Effect.fnUntraced(function* (kube: KubeClient["Service"]) {
  const labels = (object: { readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined } }) =>
    object.metadata.labels?.[deploymentLabel] ?? "none"
  const pods = yield* kube.list(Pod, { namespace })
  const jobs = yield* kube.list(Job, { namespace })
  const secrets = yield* kube.list(Secret, { namespace })
  return [
    ...pods.map((object) => `Pod ${labels(object)}`),
    ...jobs.map((object) => `Job ${labels(object)}`),
    ...secrets.map((object) => `Secret ${labels(object)}`)
  ].sort()
}, Effect.orDie)

/** Lets the benchmark of a host class take a second only: how fast an engine is, is not what these tests are about. */
export const shortenBenchmark = (kube: KubeClient["Service"], hostClass = "sim-small") =>
  Effect.asVoid(Effect.orDie(kube.mergePatch(HostClassResource, hostClass, undefined, { spec: { benchmarkSeconds: 1 } })))
