import { readFileSync } from "node:fs"
import { Llama } from "../../packages/reference-engine/src/Llama.ts"
import { sound } from "../../packages/reference-engine/src/Seams.ts"
import { faultNamed } from "../../packages/reference-engine/test/mutants/index.ts"

// Loaded into an engine before it starts. On SIGUSR2 the running engine gets the fault that the file `fault` in the
// state folder names. The path of the model contains the folder. A variable would not do: variables with paths of
// temporary files are changed for each pod.

const models = new Set<Llama>()
const { step } = Llama.prototype
Llama.prototype.step = function (this: Llama, ...place) {
  models.add(this)
  return step.apply(this, place)
}

const [state = ""] =
  process.argv
    .find((word) => word.startsWith("--model="))
    ?.slice("--model=".length)
    .split("/volumes/") ?? []

process.on("SIGUSR2", () => {
  const { seams } = faultNamed(readFileSync(`${state}/fault`, "utf8"))
  Object.assign(sound, seams)
  for (const model of models) seams.model?.(model)
})
