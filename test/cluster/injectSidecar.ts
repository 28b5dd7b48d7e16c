/** Names of the container and of its port, which sort before the product's. */
const name = "mesh"

const container = `Object.spec.containers{
  name: "${name}",
  image: "ghcr.io/seatrial/reference-engine:0.1.0",
  command: ["node", "-e", "process.stdin.resume().on('end', () => process.exit()); setInterval(() => {}, 1000)"],
  ports: [Object.spec.containers.ports{name: "http-stats", containerPort: 15090}]
}`

/** Adds a first container to every pod of a run, as the webhook of a service mesh does, with an admission policy of the API server. */
export const injectSidecar = [
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicy",
    metadata: { name: "inject-sidecar" },
    spec: {
      failurePolicy: "Fail",
      reinvocationPolicy: "Never",
      matchConstraints: { resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }] },
      matchConditions: [{ name: "of-a-run", expression: "has(object.metadata.labels) && 'seatrial.dev/role' in object.metadata.labels" }],
      mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: `[JSONPatch{op: "add", path: "/spec/containers/0", value: ${container}}]` } }]
    }
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicyBinding",
    metadata: { name: "inject-sidecar" },
    spec: { policyName: "inject-sidecar" }
  }
]
