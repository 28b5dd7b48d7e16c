import { createHmac } from "node:crypto"
import type { UnsentAlarm } from "@seatrial/store"
import { Redacted } from "effect"
import type { WebhookSettings } from "./WebhookSettings.ts"

/** One message of the webhook, as Standard Webhooks defines it. */
export interface WebhookMessage {
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. The signature covers exactly this text. */
  readonly body: string
}

/** The message of an alarm, sent at `now` in Unix milliseconds. Its id stays the same if it is sent again. */
export const webhookMessage = ({ id, node, orgId, suspicion }: UnsentAlarm, key: WebhookSettings["key"], now: number): WebhookMessage => {
  const body = JSON.stringify({ type: "suspicion.created", timestamp: suspicion.created_at, data: { ...suspicion, org_id: orgId, node } })
  const timestamp = String(Math.floor(now / 1_000))
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp }
  if (key === null) return { headers, body }
  const signature = createHmac("sha256", Redacted.value(key)).update(`${id}.${timestamp}.${body}`).digest("base64")
  return { headers: { ...headers, "webhook-signature": `v1,${signature}` }, body }
}
