use super::*;

const DOCUMENT: &str = r#"{
  "test": "all_reduce", "world": 2, "transports": ["shm"], "results": [
  {"size": 8, "type": "float", "redop": "sum", "root": null,
   "out_of_place": {"time_us": 0.5, "busbw": 0.02}, "in_place": {"time_us": 0.4, "busbw": 0.03}},
  {"size": 1048576, "type": "float", "redop": "sum", "root": null,
   "out_of_place": {"time_us": 200.0, "busbw": 5.0}, "in_place": null},
  {"size": 0, "type": "float", "redop": "max", "root": null,
   "out_of_place": {"time_us": 0.5, "busbw": 0.0}, "in_place": null},
  {"size": 64, "type": "float", "redop": "max", "root": null,
   "out_of_place": {"time_us": 0.5, "busbw": 0.0}, "in_place": null}]}"#;

#[test]
fn a_curve_for_each_reduction_without_empty_sizes() {
    let run: SavedRun = serde_json::from_str(DOCUMENT).unwrap();
    let curves = curves("a", &run, true);
    let labels: Vec<_> = curves.iter().map(|curve| curve.label.as_str()).collect();
    let start = "a: all_reduce, 2 ranks, shm";
    assert_eq!(labels, [format!("{start}, sum"), format!("{start}, max")]);
    assert_eq!((curves[0].points.len(), curves[1].points.len()), (2, 1));
    assert_eq!(curves[0].points[0].time_us, 0.4);
    assert_eq!(
        curves[0].points[1].time_us, 200.0,
        "out of place where there is no other"
    );
}

#[test]
fn pictures_of_both_kinds_hold_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let documents = [
        ("first".to_owned(), DOCUMENT.to_owned()),
        ("second".to_owned(), DOCUMENT.to_owned()),
    ];
    let svg = folder.path().join("out.svg");
    draw_documents(&documents, &svg).unwrap();
    let text = std::fs::read_to_string(&svg).unwrap();
    assert!(text.starts_with("<svg"), "{}", &text[..40]);
    for word in ["first: all_reduce", "second: all_reduce", "bus bandwidth"] {
        assert!(text.contains(word), "{word}");
    }
    let picture = folder.path().join("out.png");
    draw_documents(&documents, &picture).unwrap();
    let decoder = png::Decoder::new(std::io::BufReader::new(
        std::fs::File::open(&picture).unwrap(),
    ));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let is_coloured = |pixel: &&[u8]| pixel[0] != pixel[1] || pixel[1] != pixel[2];
    assert!(pixels.chunks_exact(3).filter(is_coloured).count() > 500);
}

#[test]
fn what_holds_no_results_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.svg");
    let broken = [("this".to_owned(), "{}".to_owned())];
    let error = draw_documents(&broken, &out).unwrap_err().to_string();
    assert!(error.contains("this holds no results"), "{error}");
    let error = read("gone.json").unwrap_err().to_string();
    assert!(error.contains("gone.json"), "{error}");
    assert!(!out.exists());
}
