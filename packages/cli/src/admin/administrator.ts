import { userInfo } from "node:os"
import { Administrator } from "@seatrial/store"
import { Config, Effect, Layer, Option, Schema } from "effect"
import { CommandError } from "../CommandError.ts"
import { PlainText } from "../plainText.ts"

const Name = PlainText.check(Schema.isMaxLength(58, { message: "Expected at most 58 characters" }))
/** The account at the terminal; under sudo the one that called it. A container's account often has no name. */
const accountName = (): string | null => {
  if (process.env.SUDO_USER !== undefined && process.env.SUDO_USER !== "") return process.env.SUDO_USER
  try {
    return userInfo().username
  } catch {
    return null
  }
}

const unnamed = "The audit records who administers, and a container does not know it. Set SEATRIAL_ADMIN to your name or address."

/**
 * Who administers: `SEATRIAL_ADMIN`, else the account at the terminal. Audit events record it. In a pod of Kubernetes the account belongs to the image, and to nobody in particular, so that
 * the name is required there.
 */
export const layerAdministrator = Layer.effect(
  Administrator,
  Effect.gen(function* () {
    const named = yield* Config.schema(Name, "SEATRIAL_ADMIN").pipe(Config.option)
    const isInPod = Option.isSome(yield* Config.String("KUBERNETES_SERVICE_HOST").pipe(Config.option))
    const known = Option.getOrElse(named, () => (isInPod ? null : accountName()))
    return known === null ? yield* new CommandError({ message: unnamed, exitCode: 2 }) : known.slice(0, 58)
  })
)
