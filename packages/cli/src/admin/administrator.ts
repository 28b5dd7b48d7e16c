import { userInfo } from "node:os"
import { Administrator } from "@seatrial/store"
import { Config, Effect, Layer, Option, Schema } from "effect"
import { CommandError } from "../CommandError.ts"
import { PlainText } from "../plainText.ts"

const Name = PlainText.check(Schema.isMaxLength(58, { message: "Expected at most 58 characters" }))

/**
 * The name of the operating system account, or of the account that called sudo. Accounts in containers often have no
 * name.
 */
const accountName = (): string | null => {
  if (process.env.SUDO_USER !== undefined && process.env.SUDO_USER !== "") return process.env.SUDO_USER
  try {
    return userInfo().username
  } catch {
    return null
  }
}

const nameRequired = "Audit events record the administrator, whose name is unknown in a container. Set SEATRIAL_ADMIN to your name or email address."

/**
 * The administrator that audit events record: `SEATRIAL_ADMIN`, otherwise the operating system account. In a Kubernetes
 * pod the account belongs to the image, so `SEATRIAL_ADMIN` is required.
 */
export const layerAdministrator = Layer.effect(
  Administrator,
  Effect.gen(function* () {
    const configured = yield* Config.schema(Name, "SEATRIAL_ADMIN").pipe(Config.option)
    const isInPod = Option.isSome(yield* Config.String("KUBERNETES_SERVICE_HOST").pipe(Config.option))
    const name = Option.getOrElse(configured, () => (isInPod ? null : accountName()))
    return name === null ? yield* new CommandError({ message: nameRequired, exitCode: 2 }) : name.slice(0, 58)
  })
)
