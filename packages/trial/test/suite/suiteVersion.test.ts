import { createHash } from "node:crypto"
import { globSync, readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { fidelityItems } from "../../src/fidelity/items.ts"
import { designsFor, fewestTokens, mostTokens } from "../../src/suite/draws/designs.ts"
import { ahead, penalty } from "../../src/suite/draws/pairDesigns.ts"
import { suite } from "../../src/suite/suiteVersion.ts"
import { characterWords } from "../../src/suite/texts/characters.ts"
import { conversations } from "../../src/suite/texts/conversations.ts"
import { drawnBeginnings, drawnTexts, drawnWords } from "../../src/suite/texts/drawnTexts.ts"
import { goldenQuestions } from "../../src/suite/texts/goldenQuestions.ts"
import { likelihoodTexts, shuffled } from "../../src/suite/texts/likelihoodTexts.ts"
import { tokenizerStrings } from "../../src/suite/texts/tokenizerStrings.ts"
import { extentOf, thresholds, tinyParameters } from "../../src/suite/thresholds.ts"

/** The hash of what a version of the suite sends and judges by. */
const hashes: Readonly<Record<number, string>> = { 21: "8cd4379a1d3ccb05" }

const folder = new URL("../../src/suite/", import.meta.url)

/** Constant texts and lists at the top of the files of checks: most prompts. Names of paths are among them. */
const constants = globSync("*.ts", { cwd: folder })
  .toSorted()
  .flatMap((file) => readFileSync(new URL(file, folder), "utf8").match(/^(?:export )?const \w+(?:: [^=\n]+)? = (?:"[^"\n]*"|\[\n[\s\S]*?^\])/gmu) ?? [])
  .map((text) => text.replace(/\s+/gu, " "))

it("the version of the suite belongs to its texts, prompts and thresholds", () => {
  const parts = [
    constants,
    [thresholds, extentOf(0), extentOf(tinyParameters)],
    [conversations, goldenQuestions, likelihoodTexts, tokenizerStrings, characterWords, shuffled(likelihoodTexts[0]?.text ?? "")],
    [drawnTexts(1, 2), drawnBeginnings(1, 8), drawnWords(1, 2, 8)],
    [designsFor(fewestTokens), designsFor(mostTokens), ahead, penalty],
    fidelityItems.map(({ question }) => question)
  ]
  const hash = createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16)
  assert.isAbove(constants.length, 20)
  assert.strictEqual(
    hashes[suite.version],
    hash,
    `A text, prompt or threshold changed. Raise "version" in packages/trial/src/suite/suiteVersion.ts, also in docs/explanation/trial.md, and add the new version with the hash ${hash} to this test. If nothing that is sent or judged changed, replace the hash of this version.`
  )
})
