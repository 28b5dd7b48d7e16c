import { requestVocabulary } from "@seatrial/domain"
import { exampleIds } from "./exampleIds.ts"

interface OperationText {
  readonly summary: string
  readonly description: string
}

const paging = "Newest first. To get the next page, send `next_cursor` as `cursor` and keep all other filters. `next_cursor` is null on the last page."
const requestList = `Completed and refused requests. A running request is not listed. ${paging}`
const requestRead = "One inference request, even while it is running. Prompts and completions are never returned."
const receiptRead =
  "How the request was served: the commit of the weights, the engine version, the verification of the revision, the usage, the prices and the cost. The header `seatrial-signature` contains the signature. With `Accept: application/jose+json` the receipt and its signature are returned as one JWS. `/.well-known/jwks.json` lists the keys."
const sharedPhaseNames = "This response uses one name for some groups of phases. For example, it shows `staging` for both `provisioning` and `booting`."
const deploymentRead = "One deployment with its phases so far, oldest first, its checks and its revision. Repeat the call to follow a deployment."

/** Summary and description of each operation, by `operationId`. */
export const operationTexts: Readonly<Record<string, OperationText>> = {
  listRequests: { summary: "List requests", description: requestList },
  getRequest: { summary: "Get a request", description: requestRead },
  getReceipt: { summary: "Get a receipt", description: receiptRead },
  listOrgModels: { summary: "List models", description: `The organization's models in every status. ${paging}` },
  getOrgModel: { summary: "Get a model", description: "One model of the organization, with the revision that serves or that served last." },
  listDeployments: { summary: "List deployments", description: `Each phase has its own name, for example \`provisioning\` and \`booting\`. ${paging}` },
  getDeployment: { summary: "Get a deployment", description: `${deploymentRead} Each phase has its own name, for example \`provisioning\` and \`booting\`.` },
  listSuspicions: {
    summary: "List suspicions",
    description: `Serving engines whose probes differed from their trial, with the number of the organization's requests that they may have answered wrongly. ${paging}`
  },
  listSuspicionRequests: {
    summary: "List the requests of a suspicion",
    description: `The organization's ended requests that the engine answered since its last good probe, also those that it finished after it was withdrawn. A request that no gateway could assign to an engine is not listed. ${paging}`
  },
  listAuditEvents: { summary: "List audit events", description: `Changes of the organization's data, and the users who made them. ${paging}` },
  getAuditEvent: { summary: "Get an audit event", description: "One change, with the values before and after it. Events never contain secrets." },
  "requests.list": { summary: "List requests", description: requestList },
  "requests.get": { summary: "Get a request", description: requestRead },
  "requests.receipt": { summary: "Get a receipt", description: receiptRead },
  "deployments.preview": {
    summary: "Preview a deployment",
    description:
      "Reads the repository through the hub connection of the user who created the key, and reports whether and how Seatrial can serve the model. Creates nothing, downloads no weights and uses no GPU. Returns 200 in both cases: `kind` is `derived` or `refused`. You can send `serving` of the response unchanged in a create."
  },
  "deployments.create": {
    summary: "Create a deployment",
    description:
      "Creates a model from a `source`, or redeploys an existing one by its `model_id`. Also requires `models:write` unless `serve` is false. A repeated create with the same `Idempotency-Key` and input returns 200 with `Idempotent-Replayed: true` and the current state of the operation. Returns 422 for an unknown host class. Also returns 422 for a source that a preview would refuse, if the server has already read that source. Returns 400 for an unknown runtime, cache type or engine flag."
  },
  "deployments.list": { summary: "List deployments", description: `${sharedPhaseNames} ${paging}` },
  "deployments.get": {
    summary: "Get a deployment",
    description: `${deploymentRead} ${sharedPhaseNames}`
  },
  "deployments.events": {
    summary: "Get a deployment's phases",
    description: "The phases so far, oldest first. The response is a finite snapshot, not a stream."
  },
  "deployments.progress": {
    summary: "Get a deployment's progress",
    description:
      "What the deployment is doing or waiting for: a human-readable message, the place in the queue and the progress of the download. Updated at most every few seconds. The deployment records do not have these fields."
  },
  "deployments.cancel": {
    summary: "Cancel a deployment",
    description:
      "Cancels the run, or returns 409 if it has already ended. Takes no body, or `{}`. The serving revision is not affected. The model and reserved capacity are kept."
  },
  "models.list": {
    summary: "List own served models",
    description: "The organization's own served models as catalog records with prices of zero. OpenAI clients list models from this path."
  },
  "models.disable": {
    summary: "Disable a model",
    description:
      "The model accepts no new requests, and its GPUs are released when the running requests have ended. Its weights and settings are kept. Returns 204 even if the model is already disabled. Takes no body, or `{}`."
  },
  "models.enable": {
    summary: "Enable a model",
    description:
      "The model's last serving revision serves again when its engine is ready. Returns 204 even if the model is already enabled. Takes no body, or `{}`."
  },
  "models.getScaling": {
    summary: "Get the number of engines",
    description:
      "How many engines serve the model, and the limits between which the autoscaler sets that number; without limits it is fixed. These fields are not part of the model's record."
  },
  "models.setScaling": {
    summary: "Set the number of engines",
    description:
      "Send `replicas` (1 to 64) for a fixed number of engines. Or send `min_replicas` (0 to 63) and a larger `max_replicas` (at most 64): the autoscaler then sets the number between them. `target` is the share of the engines' measured capacity that the autoscaler aims to use: 0.1 to 1, 0.8 by default. With `min_replicas` 0 the autoscaler leaves one engine, which stops if the model is idle and its settings have `hold_seconds`. The setting applies to the serving revision and to later ones, and starts no deployment. More engines start when GPUs are free that no queued deployment needs; each is compared with the verified revision before it gets requests. Engines that are no longer wanted finish their requests first. Returns the new setting. A call that changes nothing is not audited."
  },
  "models.getLoad": {
    summary: "Get the load of a model",
    description:
      "The requests of the model that run on its engines, by engine, and those that wait at gateways, as reported in the last half minute. `capacity.requests` is how many requests one engine processes at once, as its own benchmark measured it; `capacity.source` says how. `desired` and `ready` are numbers of engines. These fields are not part of the model's record."
  },
  "models.delete": {
    summary: "Delete a model",
    description:
      "Deletes the model permanently. Its unfinished deployment is canceled, the serving revision stops after its last request, and the name becomes free. Requests, receipts and audit events are kept. A second call returns 404. If a ModelDeployment in the cluster manages the model, the call returns 409: delete that object instead."
  },
  "catalog.list": {
    summary: "List published models",
    description:
      "The public catalog with prices per token. Requires no key and ignores a key that is sent. With `If-None-Match` it returns 304 if nothing has changed."
  },
  "spending.get": {
    summary: "Get the spending",
    description:
      "What the organization has spent and may still spend: the balance of a prepaid organization, and the daily and monthly limits (UTC) of the organization and of its keys. A call that exceeds one of these limits returns 402. Administrators set the limits. In entries of the organization, `spent_micros` includes the cost of GPU time. In entries of a key it does not."
  },
  "system.health": { summary: "Check liveness", description: "For liveness probes. Does not use the database." },
  "system.readiness": {
    summary: "Check readiness",
    description: "For readiness probes. Returns 503 while the database does not answer, or if its schema requires a later version of the server."
  },
  "system.signingKeys": {
    summary: "Get the signing keys of receipts",
    description:
      "The public keys (a JWK Set) that verify receipts: the current key first, then earlier ones. The set is empty if the installation does not sign. Reject a signature by any other key."
  },
  "system.index": {
    summary: "Get the index",
    description: "A short index of the service: the paths of the documents, the models and inference. JSON, or a page with `Accept: text/html`."
  },
  "system.document": {
    summary: "Get this document",
    description: "The API as OpenAPI 3.1, generated from the schemas that the server decodes and encodes with."
  },
  "system.docs": { summary: "Browse this document", description: "A page that shows this document. It loads nothing from other origins." }
}

interface ParameterText {
  readonly description: string
  readonly example?: string | number
}

/** Description of each parameter, by name. */
export const parameterTexts: Readonly<Record<string, ParameterText>> = {
  cursor: { description: "`next_cursor` of the previous page. The cursor is valid for this list, organization and filters. `limit` may change." },
  limit: { description: "Maximum number of records in a page." },
  model_id: { description: "Only records of this model." },
  api_key_id: { description: "Only requests made with this key." },
  actor_user_id: { description: "Only changes made by this user or administrator. Write it as in `actor_user_id` of an event: `usr_...` or `admin:NAME`." },
  resource_type: { description: "Only changes of this kind of resource." },
  status: { description: "Only records in this state." },
  visibility: { description: "Only models with this visibility." },
  q: { description: "Part of the slug, display name or repository, case-insensitive. `%`, `_` and `\\` have no special meaning." },
  from: { description: "Only records at or after this time, in Unix milliseconds, for example 1700000000000." },
  to: { description: "Only records before this time, in Unix milliseconds. Must be later than `from`." },
  "idempotency-key": {
    description: "Identifies this create in the organization, so that you can safely repeat it. 1 to 128 letters, digits, `.`, `_`, `:` and `-`.",
    example: "deploy-2026-03-02"
  },
  "if-none-match": { description: "The `ETag` of the cached response." },
  request_id: { description: "ID of the request.", example: exampleIds.request }
}

/** Description of the path parameter `id`, by the segment before it. */
export const pathIds: Readonly<Record<string, ParameterText>> = {
  deployments: { description: "ID of the deployment.", example: exampleIds.deployment },
  models: { description: "ID of the model.", example: exampleIds.model },
  suspicions: { description: "ID of the suspicion.", example: exampleIds.suspicion },
  "audit-events": { description: "ID of the audit event.", example: exampleIds.auditEvent }
}

/** Description of the path parameter `id` of the organization's own models. */
export const modelIdOrName: ParameterText = {
  description: "ID or name of the model. You can put the organization before the name. Then encode the slash: `acme%2Ftiny-chat` for `acme/tiny-chat`.",
  example: "tiny-chat"
}

/** OpenAPI links from the response of one operation to the path parameters of another. */
export const links: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  listRequests: { getRequest: { request_id: "/data/0/id" }, getReceipt: { request_id: "/data/0/id" } },
  listOrgModels: { getOrgModel: { id: "/data/0/id" } },
  listDeployments: { getDeployment: { id: "/data/0/id" } },
  listSuspicions: { listSuspicionRequests: { id: "/data/0/id" } },
  listAuditEvents: { getAuditEvent: { id: "/data/0/id" } },
  "requests.list": { "requests.get": { request_id: "/data/0/id" }, "requests.receipt": { request_id: "/data/0/id" } },
  "deployments.list": { "deployments.get": { id: "/data/0/id" }, "deployments.events": { id: "/data/0/id" }, "deployments.progress": { id: "/data/0/id" } },
  "deployments.create": {
    "deployments.get": { id: "/id" },
    "deployments.events": { id: "/id" },
    "deployments.progress": { id: "/id" },
    "deployments.cancel": { id: "/id" },
    getDeployment: { id: "/id" },
    getOrgModel: { id: "/model_id" }
  },
  "deployments.cancel": { "deployments.get": { id: "/id" } }
}

/** Descriptions of the tags. */
export const tagTexts: Readonly<Record<string, string>> = {
  deployments:
    "Preview, create, follow and cancel deployments. These operations use one name for some groups of phases. For example, they show `staging` for both `provisioning` and `booting`.",
  requests: "Inference requests and their receipts.",
  org: "Read access to the organization's data. Deployments show each phase under its own name.",
  models: "List the organization's own served models, as OpenAI clients do, and change and scale them.",
  catalog: "The published models. Public.",
  spending: "What the organization may spend and has spent.",
  system: "Probes, the signing keys of receipts and this document. No key is required."
}

const inferencePaths = Object.keys(requestVocabulary)
  .map((path) => `\`POST ${path}\``)
  .join(", ")

/** The rules that apply to every operation. */
export const introduction = `Model serving: the organization's requests, receipts, models, deployments and audit events, and the public catalog.

**Keys.** Every operation under \`/v1\` except the catalog requires \`Authorization: Bearer <API_KEY>\`. A call concerns only the organization of its key. A record of another organization and a record that does not exist return the same 404. \`security\` of an operation lists the required scopes. If it has several requirements, one of them is sufficient.

**Responses.** Every response has the header \`x-request-id\`. Every error is an Error object that repeats this ID as \`request_id\`. An unknown path returns 404 \`not_found\`. Every path that accepts GET also accepts HEAD, with the same headers and no body. Every path answers OPTIONS with 204 and \`Allow\`. Other methods return 405 with \`Allow\`. A malformed HTTP request returns 400. The server closes the connection after this 400, and after every 408 and 431. Pages of other origins have access (CORS) only if the installation lists those origins.

**Input.** Unknown query parameters, unknown fields, and repeated or empty parameters (except an empty \`q\`, which is no filter) return 400, and \`param\` names them. Operations that require no key ignore query parameters, except the catalog. Bodies are JSON in UTF-8.

**Inference** is not part of this document. The gateway serves it, at its own address if the installation has one: ${inferencePaths}. An Ingress (\`k8s/samples/ingress.yaml\`) or an HTTPRoute of the Gateway API (\`k8s/samples/httproute.yaml\`) sends these paths to the gateway and all others to this server, under one host name; the chart creates either (\`charts/seatrial/README.md\`, "Expose it"). \`supported_endpoints\` and \`supported_parameters_by_endpoint\` of a model list what the model accepts.`
