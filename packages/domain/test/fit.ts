import { estimateFit, type Fit, type FitInput, type Misfit } from "../src/index.ts"

/** The fit without its components. */
export const fit = (input: FitInput): Fit | Misfit => {
  const result = estimateFit(input)
  return "fit" in result ? result.fit : result
}

export const isFit = (result: Fit | Misfit): result is Fit => "verdict" in result
