const quota = (gpus: number, namespace: string) => ({
  apiVersion: "v1",
  kind: "ResourceQuota",
  metadata: { name: "gpus", namespace },
  spec: { hard: { "requests.nvidia.com/gpu": String(gpus) } }
})

const limitRange = (namespace: string) => ({
  apiVersion: "v1",
  kind: "LimitRange",
  metadata: { name: "small", namespace },
  spec: { limits: [{ type: "Container", max: { memory: "512Mi" } }] }
})

const policy = (namespace: string) => [
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: "cost-center" },
    spec: {
      failurePolicy: "Fail",
      matchConstraints: {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }]
      },
      matchConditions: [{ name: "engines", expression: "has(object.metadata.labels) && object.metadata.labels[?'seatrial.dev/role'].orValue('') == 'engine'" }],
      validations: [{ expression: "'cost-center' in object.metadata.labels", message: "Every pod with GPUs needs the label cost-center." }]
    }
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name: "cost-center" },
    spec: { policyName: "cost-center", validationActions: ["Deny"] }
  }
]

/** A webhook that is down. Nothing listens at its address. */
const webhook = (namespace: string) => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: { name: "absent" },
  webhooks: [
    {
      name: "absent.example.com",
      clientConfig: { url: "https://127.0.0.1:9/validate" },
      failurePolicy: "Fail",
      timeoutSeconds: 2,
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      objectSelector: { matchLabels: { "seatrial.dev/role": "engine" } },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }]
    }
  ]
})

/** The means of a cluster administrator that refuse an engine's pod: their objects, and what the API server then says. */
export const refusals = (namespace: string) => [
  { name: "policy", objects: policy(namespace), says: "Every pod with GPUs needs the label cost-center." },
  { name: "quota", objects: [quota(0, namespace)], says: "exceeded quota: gpus" },
  { name: "limits", objects: [limitRange(namespace)], says: "must be less than or equal to memory limit of 512Mi" },
  { name: "webhook", objects: [webhook(namespace)], says: "failed calling webhook" }
]
