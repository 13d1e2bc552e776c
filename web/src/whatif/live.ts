// Requests predictions that the page does not contain from the service that sent the page.

import type { Answer, Data } from "../data.ts";

interface Prediction {
  readonly predicted_ms: number | null;
  readonly interval_ms: readonly [number, number] | null;
  readonly stages: readonly { readonly id: string; readonly predicted_ms: number | null }[];
  readonly refused: readonly { readonly text: string }[];
}

const PAUSE_MS = 250;

/** The service's prediction (docs/schema/prediction.json); null if the request fails, so that the page's own stays. */
export async function ask(
  url: string,
  settings: readonly string[],
  data: Data,
  signal: AbortSignal,
): Promise<Answer | null> {
  await new Promise((done) => setTimeout(done, PAUSE_MS)); // while a slider moves, only its last position is sent
  if (signal.aborted) return null;
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ settings }),
      signal,
    });
    return response.ok ? answerOf((await response.json()) as Prediction, data) : null;
  } catch {
    return null;
  }
}

function answerOf(found: Prediction, data: Data): Answer {
  const byId = new Map(found.stages.map((each) => [each.id, each.predicted_ms]));
  return {
    predicted_ms: found.predicted_ms,
    low_ms: found.interval_ms?.[0] ?? null,
    high_ms: found.interval_ms?.[1] ?? null,
    bottleneck: null,
    path_parts: null,
    stages: data.dag.nodes.map((each) => byId.get(each.id) ?? null),
    refused: found.predicted_ms === null ? found.refused.map((each) => each.text).join("; ") : null,
  };
}
