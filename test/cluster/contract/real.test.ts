import { describeContract } from "./describeContract.ts"
import { layerReal } from "./open.ts"

describeContract("a real control plane", layerReal)
