import { Receipt, SignedReceipt, signatureHeader, signedMediaType } from "@seatrial/domain"
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"

/** A receipt with its signature in a header, or both in one JWS if the caller accepts that media type. */
export const receiptAnswers = [
  HttpApiSchema.WithHeaders(Receipt, { [signatureHeader]: Schema.optionalKey(Schema.String), vary: Schema.optionalKey(Schema.String) }),
  SignedReceipt.pipe(HttpApiSchema.asJson({ contentType: signedMediaType }))
] as const
