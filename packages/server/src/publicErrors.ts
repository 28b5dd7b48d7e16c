import * as Public from "@seatrial/api"
import type { ModelManaged } from "@seatrial/store"
import { Effect } from "effect"

// The public errors as effects that fail with them. Each error contains the ID of the current request.

const refused = <E>(make: (request_id: string) => E): Effect.Effect<never, E> => Effect.flatMap(Public.RequestIdentity, (id) => Effect.fail(make(id)))

/**
 * The response is the same for a record that never existed, that was deleted, and that belongs to another organization.
 */
export const notFound = refused(
  (request_id) => new Public.NotFound({ error: { message: "This organization has no such record.", code: "not_found", request_id } })
)

/** `notFound` for the `model_id` of a body. */
export const modelNotFound = refused(
  (request_id) => new Public.NotFound({ error: { message: "This organization has no such model.", code: "not_found", param: "model_id", request_id } })
)

export const invalidParameter = (param: string, message: string) =>
  refused((request_id) => new Public.InvalidParameter({ error: { message, code: "invalid_parameter", param, request_id } }))

export const unknownParameter = (param: string) =>
  refused(
    (request_id) =>
      new Public.InvalidParameter({ error: { message: `${param} is not a parameter of this operation.`, code: "unknown_parameter", param, request_id } })
  )

export const invalidCursor = refused(
  (request_id) =>
    new Public.InvalidCursor({
      error: {
        message: "The cursor does not belong to this list with these filters. Start again without it.",
        code: "invalid_cursor",
        param: "cursor",
        request_id
      }
    })
)

export const invalidBody = (param: string | null, message: string) =>
  refused((request_id) => new Public.InvalidBody({ error: { message, code: "invalid_body", param, request_id } }))

export const idempotencyKeyRequired = refused(
  (request_id) =>
    new Public.InvalidIdempotencyKey({
      error: { message: "The header Idempotency-Key is required.", code: "idempotency_key_required", param: "Idempotency-Key", request_id }
    })
)

export const idempotencyKeyInvalid = refused(
  (request_id) =>
    new Public.InvalidIdempotencyKey({
      error: {
        message: "The header Idempotency-Key must be 1 to 128 letters, digits, dots, underscores, colons or hyphens.",
        code: "idempotency_key_invalid",
        param: "Idempotency-Key",
        request_id
      }
    })
)

export const bodyTooLarge = (bytes: number) =>
  refused((request_id) => new Public.BodyTooLarge({ error: { message: `The body must not exceed ${bytes} bytes.`, code: "body_too_large", request_id } }))

export const unsupportedMediaType = refused(
  (request_id) =>
    new Public.UnsupportedMediaType({
      error: { message: "The body must be application/json in UTF-8.", code: "unsupported_media_type", param: "Content-Type", request_id }
    })
)

export const encodedBody = refused(
  (request_id) =>
    new Public.UnsupportedMediaType({
      error: {
        message: "Compressed bodies are not accepted. Send the body without Content-Encoding.",
        code: "unsupported_media_type",
        param: "Content-Encoding",
        request_id
      }
    })
)

export const notSigned = refused(
  (request_id) =>
    new Public.NotSigned({
      error: { message: "This installation does not sign receipts: it has no signing key.", code: "not_acceptable", param: "Accept", request_id }
    })
)

export const missingApiKey = refused(
  (request_id) =>
    new Public.Unauthorized({
      error: { message: "An API key is required: Authorization: Bearer <API_KEY>.", code: "missing_api_key", request_id },
      challenge: 'Bearer realm="seatrial"'
    })
)

/**
 * One response for unknown, revoked and expired keys and for inactive organizations, so that callers cannot probe for
 * keys.
 */
export const invalidApiKey = refused(
  (request_id) =>
    new Public.Unauthorized({
      error: {
        message: "The API key is not valid: it is unknown, revoked or expired, or its organization is not active. Send a valid key.",
        code: "invalid_api_key",
        request_id
      },
      challenge: 'Bearer realm="seatrial", error="invalid_token"'
    })
)

export const missingScope = (scope: string) =>
  refused(
    (request_id) => new Public.MissingScope({ error: { message: `The API key lacks the scope ${scope}.`, code: "missing_scope", param: scope, request_id } })
  )

const rateLimitMessages = {
  key: "Too many requests with this API key.",
  org: "Too many requests from this organization.",
  address: "Too many requests with unknown API keys from your address."
} as const

/** `retryAfter`: whole seconds. */
export const rateLimited = (of: keyof typeof rateLimitMessages, retryAfter: number) =>
  refused(
    (request_id) =>
      new Public.RateLimited({
        error: { message: `${rateLimitMessages[of]} Try again in ${retryAfter} s.`, code: `${of}_rate_limited`, request_id },
        retryAfter
      })
  )

export const firstPurchaseRequired = refused(
  (request_id) =>
    new Public.FirstPurchaseRequired({
      error: {
        message:
          "The organization cannot deploy: it needs a first purchase, or its billing is suspended. Ask an administrator to record a purchase or to resume billing.",
        code: "first_purchase_required",
        request_id
      }
    })
)

/** The organization has used up its prepaid balance or a spend limit. */
export const usedUp = (kind: "balance" | "day" | "month") =>
  refused(
    (request_id) =>
      new Public.FirstPurchaseRequired({
        error:
          kind === "balance"
            ? {
                message: "The organization's prepaid balance is used up. Ask an administrator to record a purchase or to grant a credit.",
                code: "insufficient_balance",
                request_id
              }
            : {
                message: `The ${kind === "day" ? "daily" : "monthly"} spend limit of the organization is used up. Wait until the next ${kind} begins (UTC), or ask an administrator to raise the limit.`,
                code: "spend_limit_reached",
                request_id
              }
      })
  )

export const modelDeleted = refused(
  (request_id) => new Public.ModelDeleted({ error: { message: "The model of this deployment has been deleted.", code: "model_deleted", request_id } })
)

export const idempotencyKeyReused = refused(
  (request_id) =>
    new Public.IdempotencyKeyReused({
      error: {
        message: "This Idempotency-Key was already used for a request with a different body. Use a new key.",
        code: "idempotency_key_reused",
        param: "Idempotency-Key",
        request_id
      }
    })
)

/** The refusal of a preview, with its code and message. */
export const refusedAsPreviewed = (code: typeof Public.RefusedCode.Type, message: string, param: string | null) =>
  refused((request_id) => new Public.Refused({ error: { message, code, ...(param === null ? {} : { param }), request_id } }))

export const modelNameTaken = (slug: string) =>
  refused(
    (request_id) =>
      new Public.ModelNameTaken({
        error: {
          message: `The organization already has a model named ${slug}. Choose another model_name, redeploy the model with its model_id, or free the name with DELETE /v1/models/${slug}.`,
          code: "model_name_taken",
          param: "model_name",
          request_id
        }
      })
  )

export const modelNotActivated = refused(
  (request_id) =>
    new Public.ModelNotActivated({
      error: {
        message: "The model does not serve: none of its revisions has been activated. Deploy it again with its model_id, or delete it.",
        code: "model_not_activated",
        request_id
      }
    })
)

const managed = (message: string) => refused((request_id) => new Public.ModelManaged({ error: { message, code: "model_managed", request_id } }))

export const modelManaged = (namespace: string, name: string) =>
  managed(
    `The model is managed by the ModelDeployment ${name} in the namespace ${namespace}. Delete that object: kubectl -n ${namespace} delete modeldeployment ${name}.`
  )

export const scalingManaged = ({ isAutoscaled, name, namespace }: ModelManaged) => {
  const object = `The ModelDeployment ${name} in the namespace ${namespace} sets`
  return managed(
    isAutoscaled
      ? `${object} the limits of the autoscaler (spec.scaling). Change them there: kubectl -n ${namespace} edit modeldeployment ${name}. Or remove spec.scaling from the object.`
      : `${object} the number of engines (spec.replicas). Change it there: kubectl -n ${namespace} scale modeldeployment ${name} --replicas=N. Or remove spec.replicas from the object.`
  )
}

export const deploymentFinished = (phase: string) =>
  refused(
    (request_id) =>
      new Public.DeploymentFinished({
        error: {
          message: `The deployment cannot be canceled, because it has already finished. Its phase is ${phase}.`,
          code: "deployment_finished",
          request_id
        }
      })
  )

export const internal = refused(
  (request_id) =>
    new Public.Internal({ error: { message: "The server failed. Its log contains the cause under this request ID.", code: "internal", request_id } })
)

/** `retryAfter`: whole seconds. */
export const unavailable = (message: string, retryAfter: number) =>
  refused((request_id) => new Public.Unavailable({ error: { message, code: "unavailable", request_id }, retryAfter }))
