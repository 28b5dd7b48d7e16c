import { RefusalAudience } from "@seatrial/hub"
import type { KubeObject, OwnerReference, Secret } from "@seatrial/kube"
import type { Run, RunRevision } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { audienceOf } from "../observation/audienceOf.ts"
import { tagOf } from "../resources/imageDigest.ts"
import { fetchContainer, fetchJobName, hubSecretName, madeFromAnnotation } from "../resources/objectNames.ts"
import { weightsArguments } from "../resources/weightFiles.ts"
import { digestOf, pullSecrets, restrictedContainer, restrictedPod, runLabels, standardLabels } from "./engineObjects.ts"

interface FetchInput {
  readonly run: Run
  readonly revision: RunRevision
  readonly settings: Pick<OperatorSettings, "caConfigMap" | "downloadEnvironment" | "fetchImage" | "fetchSeconds" | "hubEndpoint" | "namespace" | "pullSecrets">
  readonly weightsClaim: string
  /** Null if the object has no owner. */
  readonly owner: OwnerReference | null
}

const ownedBy = (owner: OwnerReference | null) => (owner === null ? {} : { ownerReferences: [owner] })

/** The labels of a download's objects. The version is the tag of its image. */
const downloadLabels = (run: Run, { fetchImage }: Pick<OperatorSettings, "fetchImage">) => ({
  ...standardLabels({ id: run.id, component: "download", program: "seatrial-fetch", version: tagOf(fetchImage) }),
  ...runLabels(run, "fetch")
})

/** The Secret that passes the hub token to the download. It has the same owner. */
export const hubSecret = ({ owner, run, settings }: FetchInput, token: string): Secret => ({
  metadata: { name: hubSecretName(run.id), namespace: settings.namespace, labels: downloadLabels(run, settings), ...ownedBy(owner) },
  type: "Opaque",
  immutable: true,
  stringData: { token }
})

/** The mount path of certificates of a private certificate authority. */
const certificates = "/etc/seatrial/certificates"

/** The audience of the download's refusals: see `audienceOf`. */
const sharingOrganization = (run: Run): ReadonlyArray<string> =>
  RefusalAudience.$match(audienceOf(run), { ApiCaller: () => [], AppliedObject: ({ organization }) => [`--token-shared-by=${organization}`] })

/** The parts of the pod for certificates of a private certificate authority. Without one there are none. */
const certificatesOf = ({ caConfigMap }: FetchInput["settings"]) =>
  caConfigMap === null
    ? { variables: [], mounts: [], volumes: [] }
    : {
        variables: [{ name: "NODE_EXTRA_CA_CERTS", value: `${certificates}/ca.crt` }],
        mounts: [{ name: "certificates", mountPath: certificates, readOnly: true }],
        volumes: [{ name: "certificates", configMap: { name: caConfigMap } }]
      }

const downloadContainer = ({ revision, run, settings }: FetchInput, withToken: boolean) => {
  const hash = revision.facts.adapter?.content_hash ?? null
  const { mounts, variables } = certificatesOf(settings)
  return {
    name: fetchContainer,
    image: settings.fetchImage,
    command: ["seatrial", "fetch"],
    args: [...weightsArguments(revision, "/weights"), ...(hash === null ? [] : [`--adapter-hash=${hash}`]), ...sharingOrganization(run)],
    env: [
      { name: "HF_ENDPOINT", value: settings.hubEndpoint },
      ...settings.downloadEnvironment,
      ...variables,
      { name: "HOME", value: "/tmp" },
      // The files never pass through V8's heap. Without a limit the heap grows into the free memory.
      { name: "NODE_OPTIONS", value: "--max-old-space-size=128 --max-semi-space-size=2" },
      ...(withToken ? [{ name: "HF_TOKEN", valueFrom: { secretKeyRef: { name: hubSecretName(run.id), key: "token" } } }] : [])
    ],
    resources: { requests: { cpu: "500m", memory: "512Mi" }, limits: { memory: "1Gi" } },
    securityContext: restrictedContainer,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [{ name: "weights", mountPath: "/weights" }, { name: "scratch", mountPath: "/tmp" }, ...mounts]
  }
}

const downloadPod = (input: FetchInput, withToken: boolean) => {
  const { settings, weightsClaim } = input
  return {
    restartPolicy: "Never",
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...pullSecrets(settings),
    // Do not change the ownership of terabytes at each download.
    securityContext: { ...restrictedPod, fsGroupChangePolicy: "OnRootMismatch" },
    containers: [downloadContainer(input, withToken)],
    volumes: [{ name: "weights", persistentVolumeClaim: { claimName: weightsClaim } }, { name: "scratch", emptyDir: {} }, ...certificatesOf(settings).volumes]
  }
}

/**
 * The Job that downloads a pinned commit and verifies every file. Exit code 3 means that another attempt cannot help.
 */
export const fetchJob = (input: FetchInput, withToken: boolean): KubeObject => {
  const { owner, run, settings } = input
  const labels = downloadLabels(run, settings)
  const spec = {
    backoffLimit: 2,
    activeDeadlineSeconds: settings.fetchSeconds,
    podFailurePolicy: {
      rules: [
        { action: "FailJob", onExitCodes: { containerName: fetchContainer, operator: "In", values: [3] } },
        // A node drain or restart does not count as a failed download.
        { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }
      ]
    },
    template: { metadata: { labels }, spec: downloadPod(input, withToken) }
  }
  // Labels for people do not make a running download outdated.
  const jobSpec = { ...spec, template: { ...spec.template, metadata: { labels: runLabels(run, "fetch") } } }
  const annotations = { [madeFromAnnotation]: digestOf(jobSpec) }
  const object = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: fetchJobName(run.id), namespace: settings.namespace, labels, ...ownedBy(owner), annotations },
    spec
  }
  return object
}
