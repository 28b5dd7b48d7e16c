import { exampleIds } from "./exampleIds.ts"

interface ExampleError {
  readonly type: string
  readonly message: string
  readonly param?: string
}

/** One example for each error code of the API, with the message of the server. */
const errors: Readonly<Record<string, ExampleError>> = {
  invalid_parameter: { type: "invalid_request_error", message: "limit must be a value between 1 and 200.", param: "limit" },
  unknown_parameter: { type: "invalid_request_error", message: "offset is not a parameter of this operation.", param: "offset" },
  invalid_cursor: {
    type: "invalid_request_error",
    message: "The cursor does not belong to this list with these filters. Start again without it.",
    param: "cursor"
  },
  invalid_body: { type: "invalid_request_error", message: "color is not a known field.", param: "color" },
  idempotency_key_required: { type: "invalid_request_error", message: "The header Idempotency-Key is required.", param: "Idempotency-Key" },
  idempotency_key_invalid: {
    type: "invalid_request_error",
    message: "The header Idempotency-Key must be 1 to 128 letters, digits, dots, underscores, colons or hyphens.",
    param: "Idempotency-Key"
  },
  missing_api_key: { type: "authentication_error", message: "An API key is required: Authorization: Bearer <API_KEY>." },
  invalid_api_key: {
    type: "authentication_error",
    message: "The API key is not valid: it is unknown, revoked or expired, or its organization is not active. Send a valid key."
  },
  first_purchase_required: {
    type: "billing_error",
    message:
      "The organization cannot deploy: it needs a first purchase, or its billing is suspended. Ask an administrator to record a purchase or to resume billing."
  },
  insufficient_balance: {
    type: "billing_error",
    message: "The organization's prepaid balance is used up. Ask an administrator to record a purchase or to grant a credit."
  },
  spend_limit_reached: {
    type: "billing_error",
    message: "The monthly spend limit of the organization is used up. Wait until the next month begins (UTC), or ask an administrator to raise the limit."
  },
  missing_scope: { type: "permission_error", message: "The API key lacks the scope requests:read.", param: "requests:read" },
  not_found: { type: "not_found_error", message: "This organization has no such record." },
  model_deleted: { type: "not_found_error", message: "The model of this deployment has been deleted." },
  not_acceptable: { type: "invalid_request_error", message: "This installation does not sign receipts: it has no signing key.", param: "Accept" },
  method_not_allowed: { type: "invalid_request_error", message: "This path accepts GET, HEAD, OPTIONS." },
  request_timeout: { type: "invalid_request_error", message: "The request took too long to arrive." },
  idempotency_key_reused: {
    type: "conflict_error",
    message: "This Idempotency-Key was already used for a request with a different body. Use a new key.",
    param: "Idempotency-Key"
  },
  model_name_taken: {
    type: "conflict_error",
    message:
      "The organization already has a model named first. Choose another model_name, redeploy the model with its model_id, or free the name with DELETE /v1/models/first.",
    param: "model_name"
  },
  model_not_activated: {
    type: "conflict_error",
    message: "The model does not serve: none of its revisions has been activated. Deploy it again with its model_id, or delete it."
  },
  model_managed: {
    type: "conflict_error",
    message: "The model is managed by the ModelDeployment tiny in the namespace team-a. Delete that object: kubectl -n team-a delete modeldeployment tiny."
  },
  deployment_finished: { type: "conflict_error", message: "The deployment cannot be canceled, because it has already finished. Its phase is activated." },
  host_class_unknown: { type: "refused_error", message: "There is no host class h200; choose one of h100, h100-2.", param: "serving.host_class" },
  unsupported_architecture: {
    type: "refused_error",
    message: "MambaForCausalLM with quantization none is not supported by reference-0.1.0. Choose a model of one of these architectures: LlamaForCausalLM."
  },
  does_not_fit: { type: "refused_error", message: "140.0 GiB of weights do not fit h100 (80.0 GiB). The model fits on the host class h100-2." },
  context_too_long: {
    type: "refused_error",
    message:
      "The model supports up to 8192 tokens; 16384 were requested. Request a context of 8192 tokens, or extend the model's context with yarn (factor 2).",
    param: "serving.max_context"
  },
  body_too_large: { type: "invalid_request_error", message: "The body must not exceed 1048576 bytes." },
  unsupported_media_type: { type: "invalid_request_error", message: "The body must be application/json in UTF-8.", param: "Content-Type" },
  key_rate_limited: { type: "rate_limit_error", message: "Too many requests with this API key. Try again in 1 s." },
  address_rate_limited: { type: "rate_limit_error", message: "Too many requests with unknown API keys from your address. Try again in 1 s." },
  org_rate_limited: { type: "rate_limit_error", message: "Too many requests from this organization. Try again in 1 s." },
  headers_too_large: { type: "invalid_request_error", message: "The request line and headers are too large." },
  internal: { type: "api_error", message: "The server failed. Its log contains the cause under this request ID." },
  unavailable: { type: "api_error", message: "The database is unavailable." }
}

/** The body of an error response, or undefined if no operation has the code. */
export const exampleError = (code: string): { readonly error: unknown } | undefined => {
  const example = errors[code]
  if (example === undefined) return undefined
  const { message, param, type } = example
  return { error: { message, type, code, ...(param === undefined ? {} : { param }), request_id: exampleIds.request } }
}
