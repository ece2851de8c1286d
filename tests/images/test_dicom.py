"""DICOM: how a frame is drawn, what is refused, and that only its pixels leave the machine."""

from __future__ import annotations

import base64
import copy
import json
import struct
import sys
from io import BytesIO

import pytest

import langchain_svc as svc
from langchain_svc._images.metadata import without_metadata
from langchain_svc.sandbox import Sandbox

pydicom = pytest.importorskip("pydicom", reason="the extra dicom is not installed")
np = pytest.importorskip("numpy", reason="the extra dicom is not installed")
Image = pytest.importorskip("PIL.Image", reason="the extra dicom is not installed")

from pydicom import Dataset  # noqa: E402
from pydicom.dataset import FileMetaDataset  # noqa: E402
from pydicom.encaps import encapsulate  # noqa: E402
from pydicom.uid import (  # noqa: E402
    CTImageStorage,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLSLossless,
    RLELossless,
)

IDENTITY = {
    "PatientName": "Quuxberg^Zebulonia", "PatientID": "MRN-88231-77", "PatientBirthDate": "19630616", "OtherPatientNames": "Frobnitz^Z", "PatientAddress": "77 Wumpus Terrace",
    "InstitutionName": "Grobulin General", "ReferringPhysicianName": "Hackenbush^Dorble", "AccessionNumber": "ACC0099123", "StudyDescription": "Knee of Quuxberg", "OperatorsName": "Flurb^Op",
    "PatientComments": "lives in Flurbville", "StudyDate": "20240229", "DeviceSerialNumber": "SN-5551212",
}  # fmt: skip
MARKS = ["Quuxberg", "Zebulonia", "MRN-88231", "19630616", "Frobnitz", "Wumpus", "Grobulin", "Hackenbush", "ACC0099123", "Flurb", "20240229", "SN-5551212", "PRIVATEER"]  # fmt: skip


def dataset(
    pixels, syntax=ExplicitVRLittleEndian, bits=16, signed=False, kind="MONOCHROME2", **elements
):
    """A CT of these pixels (frames, rows, columns[, samples]) with everything that names a patient."""
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = syntax
    ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = CTImageStorage
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = "1.2.3.4.5"
    ds.Modality = "CT"
    for name, value in IDENTITY.items():
        setattr(ds, name, value)
    block = ds.private_block(0x0029, "PRIVATEER 1.0", create=True)
    block.add_new(1, "LO", "Quuxberg in a private element")
    pixels = np.asarray(pixels)
    colour = kind in {"RGB", "YBR_FULL", "YBR_FULL_422", "HSV"}
    shape = pixels.shape[-3:-1] if colour else pixels.shape[-2:]
    frames = pixels.size // (shape[0] * shape[1] * (3 if colour else 1))
    ds.Rows, ds.Columns = shape
    if frames > 1:
        ds.NumberOfFrames = frames
    ds.SamplesPerPixel = 3 if colour else 1
    if colour:
        ds.PlanarConfiguration = 0
    ds.PhotometricInterpretation = kind
    ds.BitsAllocated = 8 if bits <= 8 else 16
    ds.BitsStored, ds.HighBit = bits, bits - 1
    ds.PixelRepresentation = int(signed)
    raw = pixels.astype(f"<{'i' if signed else 'u'}{ds.BitsAllocated // 8}").tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    ds["PixelData"].VR = "OB" if bits <= 8 else "OW"
    for name, value in elements.items():
        setattr(ds, name, value)
    return ds


def saved(ds, **options):
    file = BytesIO()
    pydicom.dcmwrite(file, ds, enforce_file_format=True, **options)
    return file.getvalue()


def compressed(ds, syntax):
    ds = copy.deepcopy(ds)
    ds.compress(syntax, generate_instance_uid=False)
    return ds


def drawn(source, **options):
    """The pixels of the picture, after a look at its file."""
    png = svc.DicomImage(source, **options).png()
    assert without_metadata(png) == png
    with Image.open(BytesIO(png)) as image:
        assert image.format == "PNG"
        assert image.mode in {"L", "RGB"}
        return np.asarray(image)


def refused(source, said, **options):
    with pytest.raises(svc.SvcRequestError, match=said) as raised:
        svc.DicomImage(source, **options).png()
    for mark in MARKS:
        assert mark not in str(raised.value)


def item(**elements):
    ds = Dataset()
    for name, value in elements.items():
        setattr(ds, name, value)
    return ds


def lut(descriptor, values, **elements):
    made = item(LUTDescriptor=descriptor, **elements)
    made.add_new("LUTData", "OW", np.array(values, "<u2").tobytes())
    return made


RAMP = np.array([[0, 100, 200], [300, 400, 1000]])
HU = {"RescaleSlope": 2, "RescaleIntercept": -1000}


# -- drawing ---------------------------------------------------------------------------------------

DRAWN = [
    ({}, {}, [[0, 26, 51], [76, 102, 255]]),  # from the least to the greatest
    ({"kind": "MONOCHROME1"}, {}, [[255, 229, 204], [179, 153, 0]]),
    (HU, {}, [[0, 26, 51], [76, 102, 255]]),
    ({"WindowCenter": 200.5, "WindowWidth": 201}, {}, [[0, 0, 128], [255, 255, 255]]),
    ({"WindowCenter": 200.5, "WindowWidth": 401}, {}, [[0, 64, 128], [191, 255, 255]]),
    ({"WindowCenter": [200.5, 40], "WindowWidth": [401, 80]}, {}, [[0, 64, 128], [191, 255, 255]]),
    ({"WindowCenter": 200.5, "WindowWidth": 401, "kind": "MONOCHROME1"}, {}, [[255, 191, 127], [64, 0, 0]]),
    ({**HU, "WindowCenter": -599.5, "WindowWidth": 801}, {}, [[0, 64, 128], [191, 255, 255]]),
    ({"WindowCenter": 200, "WindowWidth": 400, "VOILUTFunction": "LINEAR_EXACT"}, {}, [[0, 64, 128], [191, 255, 255]]),
    ({"WindowCenter": 200, "WindowWidth": 400, "VOILUTFunction": "SIGMOID"}, {}, [[30, 69, 128], [186, 225, 255]]),
    ({"WindowCenter": 200, "WindowWidth": 0}, {}, [[0, 26, 51], [76, 102, 255]]),
    ({"WindowCenter": 5, "WindowWidth": 9}, {"window": (200.5, 401)}, [[0, 64, 128], [191, 255, 255]]),
    (HU, {"window": (-599.5, 801)}, [[0, 64, 128], [191, 255, 255]]),
    ({"VOILUTSequence": [lut([4, 100, 8], [9, 50, 200, 255])]}, {}, [[9, 9, 255], [255, 255, 255]]),
    ({"VOILUTSequence": [lut([4, 100, 16], [9, 50, 200, 65535])]}, {}, [[0, 0, 255], [255, 255, 255]]),
    ({"VOILUTSequence": [lut([4, 100, 8], [9, 50, 200, 255])]}, {"window": (200.5, 401)}, [[0, 64, 128], [191, 255, 255]]),
    ({"PixelPaddingValue": 1000}, {}, [[0, 64, 128], [191, 255, 255]]),
    ({"PixelPaddingValue": 1000, "PixelPaddingRangeLimit": 400}, {}, [[0, 85, 170], [255, 255, 255]]),
    ({}, {"blank": [(2, 1, 9, 9)]}, [[0, 64, 128], [191, 255, 0]]),
    ({"kind": "MONOCHROME1"}, {"blank": [(2, 1, 1, 1), (0, 0, 1, 1)]}, [[0, 255, 170], [85, 0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize("form", ["bytes", "dataset", "path"])
@pytest.mark.parametrize(("elements", "options", "expected"), DRAWN)
def test_grey_values(elements, options, expected, form, tmp_path):
    ds = dataset(RAMP, **elements)
    path = tmp_path / "x"
    path.write_bytes(saved(ds))
    source = {"bytes": path.read_bytes(), "dataset": ds, "path": path}[form]
    assert drawn(source, **options).tolist() == expected


def test_signed_values():
    signed = dataset(RAMP - 500, signed=True, WindowCenter=-299.5, WindowWidth=401)
    assert drawn(signed).tolist() == [[0, 64, 128], [191, 255, 255]]


def test_a_table_of_8_bits_may_be_longer_than_they_count():
    table = lut([1024, 0, 8], [n // 4 for n in range(1024)])
    assert drawn(dataset(RAMP, VOILUTSequence=[table])).tolist() == [[0, 25, 50], [75, 100, 250]]
    packed = copy.deepcopy(table)
    packed["LUTData"].value = bytes(n // 4 for n in range(1024))
    assert drawn(dataset(RAMP, VOILUTSequence=[packed])).tolist() == [[0, 25, 50], [75, 100, 250]]


ONE_SHADE = [
    (dataset(np.full((2, 2), 77)), {}),
    (dataset(RAMP, WindowCenter=-900, WindowWidth=2), {}),
    (dataset(RAMP), {"window": (5000, 10)}),
    (dataset(RAMP), {"blank": [(0, 0, 3, 2)]}),
    (dataset(np.full((2, 2, 3), 7), bits=8, kind="RGB"), {}),
]


@pytest.mark.parametrize(("ds", "options"), ONE_SHADE)
def test_a_picture_on_which_nothing_can_be_seen_is_an_error_that_says_so(ds, options):
    refused(ds, r"all of its pixels have one shade. Give another window=.*frame", **options)


@pytest.mark.parametrize("function", [None, "LINEAR_EXACT"])
def test_a_window_narrower_than_one_counts_in_fractions(function):
    small = {"RescaleSlope": 0.001, "RescaleIntercept": 0}  # from 0 to 1, as SUV of PET
    ds = dataset(RAMP, **small, WindowCenter=0.2, WindowWidth=0.4)
    if function:
        ds.VOILUTFunction = function
    assert drawn(ds).tolist() == [[0, 64, 128], [191, 255, 255]]
    ds.WindowCenter = 99
    assert drawn(ds, window=(0.2, 0.4)).tolist() == [[0, 64, 128], [191, 255, 255]]


@pytest.mark.parametrize(
    ("elements", "shape"),
    [
        ({}, (40, 60)), ({"PixelAspectRatio": [1, 1]}, (40, 60)), ({"PixelAspectRatio": [2, 1]}, (80, 60)), ({"PixelAspectRatio": [1, 2]}, (40, 120)), ({"PixelSpacing": [1.5, 0.5]}, (120, 60)),
        ({"ImagerPixelSpacing": [0.2, 0.2]}, (40, 60)), ({"PixelAspectRatio": [0, 1]}, (40, 60)), ({"PixelAspectRatio": [-1, 2]}, (40, 60)), ({"PixelAspectRatio": [100_000, 1]}, (2048, 1)),
        ({"SharedFunctionalGroupsSequence": [Dataset()]}, (40, 60)),
    ],
)  # fmt: skip
def test_pixels_that_are_not_square_are_drawn_in_their_shape(elements, shape):
    ds = dataset(np.arange(40 * 60).reshape(40, 60), **elements)
    if "SharedFunctionalGroupsSequence" in elements:
        measures = item(PixelSpacing=[2, 1])
        elements["SharedFunctionalGroupsSequence"][0].PixelMeasuresSequence = [measures]
        shape = (80, 60)
    if shape == (2048, 1):  # only as large as is asked for
        refused(ds, "more than 50,000,000", longest_side=None)
    assert drawn(saved(ds)).shape == shape


def test_a_modality_lut():
    sequence = [lut([3, 0, 16], [0, 500, 1000], ModalityLUTType="US")]
    ds = dataset([[0, 1, 2]], ModalityLUTSequence=sequence, WindowCenter=500.5, WindowWidth=1001)
    assert drawn(ds).tolist() == [[0, 128, 255]]


RGB = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [10, 20, 30]]])


def test_colours_stay_right():
    assert (drawn(dataset(RGB, bits=8, kind="RGB")) == RGB).all()
    planes = dataset(RGB, bits=8, kind="RGB", PlanarConfiguration=1)
    planes.PixelData = np.moveaxis(RGB, -1, 0).astype("u1").tobytes()
    assert (drawn(planes) == RGB).all()
    ycc = np.asarray(Image.fromarray(RGB.astype(np.uint8)).convert("YCbCr"))
    assert abs(drawn(dataset(ycc, bits=8, kind="YBR_FULL")).astype(int) - RGB).max() <= 2
    deep = dataset(RGB * 257, bits=16, kind="RGB")
    assert (drawn(deep) == RGB).all()
    refused(dataset(RGB, bits=8, kind="HSV"), "not known here")


@pytest.mark.parametrize("bits", [8, 16])
def test_palettes(bits):
    reds, greens, blues = RGB.reshape(4, 3).T * (257 if bits == 16 else 1)
    palette = {
        f"{name}PaletteColorLookupTable{part}": value
        for name, values in (("Red", reds), ("Green", greens), ("Blue", blues))
        for part, value in (
            ("Descriptor", [4, 0, bits]),
            ("Data", values.astype("<u2" if bits == 16 else "u1").tobytes()),
        )
    }
    ds = dataset([[0, 1], [2, 3]], bits=8, kind="PALETTE COLOR", **palette)
    assert (drawn(ds) == RGB).all()


# -- series -----------------------------------------------------------------------------------------


def series(
    folder, positions, *, axes=(1, 0, 0, 0, 1, 0), numbers=None, each=lambda _: {}, **elements
):
    """A folder of slices whose only shade in its middle is their number, in files of any order."""
    for number, position in enumerate(positions):
        pixels = np.zeros((16, 16), int)
        pixels[4:12, 4:12] = 10 * (number + 1)
        ds = dataset(pixels, bits=8, WindowCenter=128, WindowWidth=256, SeriesInstanceUID="1.2.3")
        ds.VOILUTFunction = "LINEAR_EXACT"
        if position is not None:
            ds.ImagePositionPatient, ds.ImageOrientationPatient = position, list(axes)
        if numbers:
            ds.InstanceNumber = numbers[number]
        for name, value in {**elements, **each(number)}.items():
            setattr(ds, name, value)
        (folder / f"{(number * 7) % 10}-{number}.dcm").write_bytes(saved(ds))
    return folder


def shades(png):
    """The shade of each cell of a sheet, row by row."""
    with Image.open(BytesIO(png)) as image:
        assert without_metadata(png) == png
        pixels = np.asarray(image)
    return [[int(n) for n in row] for row in pixels[8::16, 8::16]], pixels.shape


def test_a_series_is_seen_in_the_order_of_its_positions(tmp_path):
    (tmp_path / "DICOMDIR.txt").write_text("no DICOM")
    (tmp_path / "inner").mkdir()
    (tmp_path / "report.dcm").write_bytes(saved(no_picture()))
    heights = [30, -20, 5, 12.5, -7]
    folder = series(tmp_path, [[0, 0, z] for z in heights], numbers=[1, 2, 3, 4, 5])
    cells, shape = shades(svc.DicomSeries(folder).montage(9, longest_side=48))
    assert cells == [[20, 50, 30], [40, 10, 0]]
    assert shape == (32, 48)


def no_picture():
    ds = dataset(RAMP, SeriesInstanceUID="9.9", Modality="SR")
    del ds.PixelData, ds.Rows, ds.Columns
    return ds


@pytest.mark.parametrize("missing", ["position", "plane"])
def test_else_in_the_order_of_instance_numbers(missing, tmp_path):
    positions = [None] * 4 if missing == "position" else [[0, 0, z] for z in (3, 2, 1, 0)]
    tilted = {"ImageOrientationPatient": [1, 0, 0, 0, 0, -1]}
    folder = series(
        tmp_path,
        positions,
        numbers=[3, 1, 4, 2],
        each=lambda n: tilted if n == 2 and missing == "plane" else {},
    )
    assert shades(svc.DicomSeries(folder).montage(4, longest_side=32))[0] == [[20, 40], [10, 30]]


def test_sagittal_slices_lie_along_their_own_normal(tmp_path):
    folder = series(tmp_path, [[x, 0, 0] for x in (5, 1, 3)], axes=(0, 1, 0, 0, 0, 1))
    assert shades(svc.DicomSeries(folder).montage(4, longest_side=32))[0] == [[20, 30], [10, 0]]


@pytest.mark.parametrize(
    ("most", "taken"),
    [(10, range(1, 11)), (5, (1, 3, 5, 7, 9)), (4, (1, 4, 7, 10)), (3, (1, 5, 9)), (1, (5,))],
)
def test_every_nth_slice_is_on_the_sheet(most, taken, tmp_path):
    folder = series(tmp_path, [[0, 0, z] for z in range(10)])
    side = 16 * int(np.ceil(np.sqrt(len(taken))))
    if side == 16:
        side = 20  # the sheet of one slice is not made larger
    cells, shape = shades(svc.DicomSeries(folder).montage(most, longest_side=side))
    assert [n for row in cells for n in row if n] == [10 * n for n in taken]
    assert max(shape) <= side


def test_a_sheet_is_no_larger_than_asked_for_and_frames_are_slices(tmp_path):
    one = dataset(np.stack([np.add.outer(np.arange(300), np.arange(500)) + n for n in range(30)]))
    (tmp_path / "a").write_bytes(saved(one))
    with Image.open(BytesIO(svc.DicomSeries(tmp_path).montage(30, longest_side=600))) as image:
        assert image.size == (600, 300)
    sheet = svc.DicomSeries(tmp_path, window=(100, 900)).montage()
    with Image.open(BytesIO(sheet)) as image:
        assert image.width <= 2048
    assert svc.PatientContext(images=[sheet]).images


SERIES_REFUSED = [
    ({"each": lambda n: {"SeriesInstanceUID": f"1.2.{n}"}}, {}, "holds 3 series"), ({"each": lambda n: {"BurnedInAnnotation": "YES"} if n == 1 else {}}, {}, "file 3 by name: .*BurnedInAnnotation YES"),
    ({"Modality": "US"}, {}, "does not say"), ({"Modality": "SEG"}, {"burned_in": "accept"}, "a segmentation"), ({}, {"window": (5000, 5)}, "one shade"),
]  # fmt: skip


@pytest.mark.parametrize(("elements", "options", "said"), SERIES_REFUSED)
def test_a_series_that_is_refused(elements, options, said, tmp_path):
    folder = series(tmp_path, [[0, 0, z] for z in range(3)], **elements)
    with pytest.raises(svc.SvcRequestError, match=said) as raised:
        svc.DicomSeries(folder, **options).montage()
    assert not any(mark in str(raised.value) for mark in [*MARKS, ".dcm"])


@pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
@pytest.mark.filterwarnings("ignore::EncodingWarning")
def test_damaged_files_of_a_series_are_refused_or_drawn(tmp_path):
    folder = series(tmp_path, [[0, 0, z] for z in range(3)], numbers=[1, 2, 3])
    path = sorted(folder.iterdir())[1]
    data = path.read_bytes()
    texts = [b"1.2.3", b"0\\0\\1", b"1\\0\\0\\0\\1\\0"]
    damaged = [data.replace(text, b"x" * len(text)) for text in texts]
    damaged += [data[:end] for end in range(0, len(data), 41)]
    damaged.append(saved(dataset(RAMP, NumberOfFrames=-3, SeriesInstanceUID="1.2.3")))
    for one in damaged:
        path.write_bytes(one)
        try:
            assert svc.DicomSeries(folder).montage(4)
        except svc.SvcRequestError as error:
            assert not any(mark in str(error) for mark in MARKS)


def test_a_folder_without_pictures_and_bad_options(tmp_path):
    with pytest.raises(svc.SvcRequestError, match="no DICOM file with a picture"):
        svc.DicomSeries(tmp_path).montage()
    with pytest.raises(svc.SvcRequestError, match="cannot be read: No such file"):
        svc.DicomSeries(tmp_path / "none").montage()
    for options in ({"slices": 0}, {"slices": 101}, {"slices": True}, {"longest_side": 0}):
        with pytest.raises(svc.SvcRequestError, match=f"{next(iter(options))} must be"):
            svc.DicomSeries(tmp_path).montage(**options)
    with pytest.raises(svc.SvcRequestError, match="folder must be"):
        svc.DicomSeries("folder")
    with pytest.raises(svc.SvcRequestError, match="window must be"):
        svc.DicomSeries(tmp_path, window=(1, 0))


# -- frames ----------------------------------------------------------------------------------------

FRAMES = np.stack([np.pad([[n, 0], [0, 100]], (0, 62)) for n in range(1, 6)])


@pytest.mark.parametrize(
    "make",
    [
        dataset,
        lambda p: compressed(dataset(p), JPEG2000Lossless),
        lambda p: compressed(dataset(p), RLELossless),
    ],
)
def test_the_middle_frame_or_the_one_asked_for(make):
    window = {"window": (50.5, 101)}

    def shown(count, **options):
        first = drawn(saved(make(FRAMES[:count])), **window, **options)[0, 0]
        return round(int(first) * 100 / 255)

    assert [shown(count) for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
    assert [shown(5, frame=n) for n in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 5]
    refused(make(FRAMES), "it has 5 frames, counted from 1; there is no frame 6", frame=6)


def test_what_is_said_of_a_frame_goes_before_what_is_said_of_all():
    ds = dataset(np.stack([RAMP, RAMP]), WindowCenter=1, WindowWidth=2)
    shared = item(FrameVOILUTSequence=[item(WindowCenter=200.5, WindowWidth=401)])
    ds.SharedFunctionalGroupsSequence = [shared]
    each = [item(FrameVOILUTSequence=[item(WindowCenter=200.5, WindowWidth=201)]), item()]
    each[1].PixelValueTransformationSequence = [item(RescaleSlope=2, RescaleIntercept=0)]
    ds.PerFrameFunctionalGroupsSequence = each
    assert drawn(saved(ds), frame=1).tolist() == [[0, 0, 128], [255, 255, 255]]
    assert drawn(saved(ds), frame=2).tolist() == [[0, 128, 255], [255, 255, 255]]


def test_large_pictures_are_made_small_but_keep_their_shape():
    ds = dataset(np.arange(60 * 90).reshape(60, 90))
    assert drawn(ds).shape == (60, 90)
    assert drawn(ds, longest_side=45).shape == (30, 45)
    big = dataset(np.arange(21_000).reshape(10, 2100))
    assert drawn(big).shape[1] == 2048
    assert drawn(big, longest_side=None).shape == (10, 2100)


# -- transfer syntaxes -----------------------------------------------------------------------------

WIDE = np.arange(80 * 70).reshape(80, 70) % 251


@pytest.mark.parametrize(
    "syntax",
    [
        ImplicitVRLittleEndian,
        ExplicitVRLittleEndian,
        ExplicitVRBigEndian,
        DeflatedExplicitVRLittleEndian,
        JPEG2000Lossless,
        RLELossless,
    ],
)
def test_stored_plain_or_compressed_without_loss(syntax):
    ds = dataset(WIDE, WindowCenter=128, WindowWidth=256, VOILUTFunction="LINEAR_EXACT")
    expected = drawn(ds)
    assert expected.max() > 200
    if syntax.is_compressed:
        ds = compressed(ds, syntax)
    elif syntax == ExplicitVRBigEndian:
        ds.PixelData = WIDE.astype(">u2").tobytes()
    ds.file_meta.TransferSyntaxUID = syntax
    data = (
        saved(ds) if syntax.is_little_endian else saved(ds, implicit_vr=False, little_endian=False)
    )
    assert (drawn(data) == expected).all()


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_jpeg(mode):
    smooth = np.add.outer(np.arange(40), np.arange(32)).astype(np.uint8) * 3
    picture = Image.fromarray(smooth).convert(mode)
    file = BytesIO()
    picture.save(file, "JPEG", quality=95)
    ds = dataset(
        np.asarray(picture), bits=8, kind="YBR_FULL_422" if mode == "RGB" else "MONOCHROME2"
    )
    ds.PixelData = encapsulate([file.getvalue()])
    ds["PixelData"].is_undefined_length = True
    ds.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    shown = drawn(saved(ds), window=(128, 256)) if mode == "L" else drawn(saved(ds))
    assert abs(shown.astype(int) - np.asarray(picture)).max() <= 8


def test_jpeg_ls():
    # The example of ITU-T T.87, annex H.3.
    frame = bytes.fromhex(
        "ffd8fff7000b080004000401011100ffda0008010100000000c000006c80208e01c000005740"
        "00006ee6000001bc18000005d800009160ffd9"
    )
    ds = dataset(np.zeros((4, 4), int), bits=8, WindowCenter=128, WindowWidth=256)
    ds.PixelData = encapsulate([frame])
    ds["PixelData"].is_undefined_length = True
    ds.file_meta.TransferSyntaxUID = JPEGLSLossless
    expected = [[0, 0, 90, 74], [68, 50, 43, 205], [64, 145, 145, 145], [100, 145, 145, 145]]
    assert drawn(saved(ds)).tolist() == expected


def boxed(codestream, *, large=False):
    """A JP2 file with more than a kilobyte before its codestream, as encoders write with notes."""

    def box(kind, content):
        return struct.pack(">I4s", 8 + len(content), kind) + content

    content = struct.pack(">I4sQ", 1, b"jp2c", 16 + len(codestream)) if large else struct.pack(">I4s", 0, b"jp2c")  # fmt: skip
    start = codestream.index(b"\xff\x4f\xff\x51")
    original = codestream[start:]
    head = codestream[: start - 8] if start else b""
    return head + box(b"free", b"\xff\x4f\xff\x51" + bytes(2000)) + content + original


@pytest.mark.parametrize("large", [False, True])
def test_jpeg_2000_with_long_headers(large):
    file = BytesIO()
    Image.fromarray(WIDE.astype(np.uint8)).save(file, "JPEG2000")
    ds = dataset(WIDE, bits=8, WindowCenter=128, WindowWidth=256, VOILUTFunction="LINEAR_EXACT")
    expected = drawn(ds)
    ds.PixelData = encapsulate([boxed(file.getvalue(), large=large)])
    ds["PixelData"].is_undefined_length = True
    ds.file_meta.TransferSyntaxUID = JPEG2000Lossless
    assert (drawn(saved(ds)) == expected).all()
    ds.Rows = 79
    refused(saved(ds), "not of the size its header gives")


# -- what is refused -------------------------------------------------------------------------------


def bomb(syntax):
    """A file of a few pixels whose compressed data unfolds to far more."""
    if syntax == RLELossless:
        ds = dataset(np.zeros((4, 4), int), bits=8)
        frame = struct.pack("<16I", 1, 64, *[0] * 14) + b"\x81\x00" * 100_000
    else:
        ds = compressed(dataset(np.zeros((2000, 2000), int), bits=8), JPEG2000Lossless)
        frame = pydicom.encaps.get_frame(ds.PixelData, 0, number_of_frames=1)
        ds.Rows = ds.Columns = 4
    ds.PixelData = encapsulate([frame])
    ds["PixelData"].is_undefined_length = True
    ds.file_meta.TransferSyntaxUID = syntax
    return ds


@pytest.mark.parametrize("syntax", [RLELossless, JPEG2000Lossless])
def test_compressed_pixels_of_another_size_are_refused_before_they_unfold(syntax, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr("langchain_svc._images.dicom_picture.pixel_array", never)
    refused(bomb(syntax), "not of the size its header gives")
    refused(saved(bomb(syntax)), "not of the size its header gives")


def test_a_deflated_file_inflates_to_a_bound(monkeypatch):
    data = saved(dataset(np.zeros((3000, 3000), int), DeflatedExplicitVRLittleEndian))
    assert len(data) < 100_000
    monkeypatch.setattr("langchain_svc._images.dicom_header._MOST_INFLATED", 1_000_000)
    refused(data, "inflates to more than 1,000,000 bytes")
    # The same where the transfer syntax stands far behind other file meta information.
    ds = dataset(np.zeros((3000, 3000), int), DeflatedExplicitVRLittleEndian)
    far = saved(ds).replace(
        b"\x02\0\1\0OB\0\0\2\0\0\0\0\1",
        b"\x02\0\1\0OB\0\0" + struct.pack("<I", 20_000) + bytes(20_000),
    )
    assert len(far) > len(data) + 19_000
    refused(far, "inflates to more than 1,000,000 bytes")
    refused(data[:-5], "inflates to more")
    monkeypatch.undo()
    refused(data[:-500], "damaged")


@pytest.mark.parametrize(
    ("elements", "name"),
    [
        ({"Modality": "SEG"}, "a segmentation"), ({"Modality": "OT", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.66.4"}, "a segmentation"), ({"Modality": "RTDOSE"}, "a dose distribution"),
        ({"Modality": "RTIMAGE"}, "an image of a radiation beam"), ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.481.1"}, "an image of a radiation beam"),
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused_by_name(elements, name):
    for options in ({}, {"burned_in": "accept"}, {"blank": [(0, 0, 1, 1)]}):
        refused(
            saved(dataset(RAMP, **elements)), f"it is {name}.*give the result as PNG", **options
        )


def no_pixels():
    ds = dataset(RAMP)
    del ds.PixelData
    return ds


def with_elements(**elements):
    return dataset(RAMP, **elements)


REFUSED = [
    (b"", "not a DICOM file"), (b"DICM" + bytes(200), "not a DICOM file"), (bytes(128) + b"DICM", "damaged|no pixels"), (bytes(128) + b"DICM" + b"Quuxberg" * 40, "damaged|no pixels|stored"), (no_pixels(), "holds no pixels"), (saved(no_pixels()), "holds no pixels"),
    (with_elements(Rows=60_000, Columns=60_000), "60000x60000 pixels, which is more than 50,000,000"), (with_elements(Rows=0), "not the size of a picture"), (with_elements(NumberOfFrames=10**9), "not the size of a picture"), (with_elements(NumberOfFrames=7), "damaged"),
    (with_elements(BitsStored=99), "damaged"), (with_elements(PixelData=b"\0\0"), "damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "said"), REFUSED)
def test_what_is_refused(source, said):
    refused(source, said)


def test_unknown_compression_is_refused():
    ds = dataset(RAMP)
    ds.file_meta.TransferSyntaxUID = pydicom.uid.MPEG2MPML
    refused(ds, "cannot be decoded here")
    ds.file_meta.TransferSyntaxUID = pydicom.uid.UID("1.2.3.4.5.6")
    refused(ds, "cannot be decoded here")
    del ds.file_meta.TransferSyntaxUID
    refused(ds, "how its pixels are stored")
    broken = compressed(dataset(WIDE), JPEG2000Lossless)
    broken.file_meta.TransferSyntaxUID = JPEGLSLossless
    refused(broken, "damaged|cannot be decoded")


@pytest.mark.parametrize(
    "make",
    [
        lambda: saved(dataset(RAMP)),
        lambda: saved(compressed(dataset(WIDE), JPEG2000Lossless)),
        lambda: saved(compressed(dataset(WIDE), RLELossless)),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
@pytest.mark.filterwarnings("ignore::EncodingWarning")
def test_cut_anywhere_it_is_refused_or_whole(make):
    data = make()
    for end in range(0, len(data), 7):
        try:
            svc.DicomImage(data[:end]).png()
        except svc.SvcRequestError as error:
            assert not any(mark in str(error) for mark in MARKS)


def test_missing_files_and_bad_options(tmp_path):
    refused(tmp_path / "none", "cannot be read: No such file")
    (tmp_path / "x").write_bytes(b"no dicom")
    refused(tmp_path / "x", "not a DICOM file")
    for options in ({"frame": 0}, {"frame": True}, {"window": (1, 0)}, {"window": 5}, {"blank": [(1, 2, 3)]}, {"blank": [(-1, 0, 1, 1)]}, {"burned_in": "maybe"}, {"longest_side": 0}):  # fmt: skip
        with pytest.raises(svc.SvcRequestError, match=f"{next(iter(options))} must be"):
            svc.DicomImage(b"", **options)


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("langchain_svc._images.dicom")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(ImportError, match=r"langchain-svc\[dicom\]"):
        svc.DicomImage(saved(dataset(RAMP))).png()


# -- text in the picture ---------------------------------------------------------------------------

SECONDARY = "1.2.840.10008.5.1.4.1.1.7.2"


@pytest.mark.parametrize(
    ("elements", "said"),
    [
        ({}, ""), ({"BurnedInAnnotation": "NO"}, ""), ({"BurnedInAnnotation": "YES"}, "BurnedInAnnotation YES"), ({"Modality": "US"}, "does not say"), ({"Modality": "US", "BurnedInAnnotation": "NO"}, ""),
        ({"Modality": "MR"}, ""), ({"Modality": "CR"}, ""), ({"Modality": "CR", "ImageType": ["DERIVED", "PRIMARY"]}, ""), ({"Modality": "CR", "ImageType": ["DERIVED", "SECONDARY"]}, "does not say"), ({"Modality": "OT"}, "does not say"), ({"SOPClassUID": SECONDARY}, "does not say"), ({"ConversionType": "DF"}, "does not say"),
        ({"ImageType": ["DERIVED", "SECONDARY", "SCREEN SAVE"]}, "does not say"), ({"ImageType": ["DERIVED", "SECONDARY", "MPR"]}, ""), ({"RecognizableVisualFeatures": "YES", "BurnedInAnnotation": "NO"}, "can be recognised"),
    ],
)  # fmt: skip
def test_text_in_the_picture_is_refused_unless_the_caller_says_otherwise(elements, said):
    ds = dataset(RAMP, **elements)
    if said:
        refused(saved(ds), said)
        refused(ds, r"blank=\[...\]")
    else:
        assert drawn(saved(ds)).shape == (2, 3)
    assert drawn(ds, burned_in="accept")[1, 2] == 255
    assert drawn(ds, blank=[(2, 1, 1, 1)])[1, 2] == 0


# -- only pixels leave the machine -----------------------------------------------------------------


def all_bodies(box):
    """Every request as it came, with everything in base64 decoded as well."""
    found = []
    for request in box.requests:
        found += [request.body, request.query.encode(), str(request.headers).encode()]
        held = [request.json]
        while held:
            one = held.pop()
            if isinstance(one, dict):
                held += [*one, *one.values()]
            elif isinstance(one, list):
                held += one
            elif isinstance(one, str) and len(one) > 40:
                found.append(
                    base64.b64decode(one.partition("base64,")[2] or one + "=" * (-len(one) % 4))
                )
    return found


FORMS = ["bytes", "base64", "dataset", "image", "compressed", "many frames"]


def given(form):
    ds = dataset(WIDE)
    if form == "compressed":
        return saved(compressed(ds, JPEG2000Lossless))
    if form == "many frames":
        return saved(dataset(np.stack([WIDE] * 4)))
    return {
        "bytes": saved(ds),
        "base64": base64.b64encode(saved(ds)).decode(),
        "dataset": ds,
        "image": svc.DicomImage(saved(ds), window=(100, 200)),
    }[form]


@pytest.mark.parametrize("form", FORMS)
def test_what_names_the_patient_does_not_reach_the_service(form):
    record = svc.PatientContext(age=61, images=[given(form)])
    store = svc.ImageStore()
    handle = store.add(given(form))
    with (
        Sandbox() as box,
        svc.SvcCancerRisk(**box.medical, patient=record) as risk,
        svc.SvcAnalyzeImage(**box.general, images=store) as analyze,
    ):
        risk.invoke({"symptoms": "a cough for weeks", "imaging_type": "chest CT"})
        analyze.invoke({"image": handle, "task": "describe"})
        bodies = all_bodies(box)
        (sent,) = box.requests[0].json["images"]
    assert base64.b64decode(sent).startswith(b"\x89PNG")
    assert sum(body.startswith(b"\x89PNG") for body in bodies) == 2
    for body in bodies:
        for mark in MARKS:
            assert mark.encode() not in body, mark
        assert b"DICM" not in body
    assert store.get(handle).format == "PNG"


def test_a_store_knows_dicom_by_its_content(tmp_path):
    store = svc.ImageStore()
    path = tmp_path / "picture.jpg"
    path.write_bytes(saved(dataset(WIDE)))
    for source in (path, str(path), svc.DicomImage(path)):
        image = store.get(store.add(source, label="a knee"))
        assert (image.format, image.width, image.height, image.label) == ("PNG", 70, 80, "a knee")
    with pytest.raises(svc.SvcRequestError, match="BurnedInAnnotation YES"):
        store.add(saved(dataset(WIDE, BurnedInAnnotation="YES")))
    with pytest.raises(svc.SvcRequestError, match="more than 1,000"):
        svc.ImageStore(max_pixels=1000).add(path)


def test_an_error_of_a_patients_image_names_its_place_only():
    with pytest.raises(ValueError, match=r"images\.1\n.*BurnedInAnnotation YES") as raised:
        svc.PatientContext(images=[dataset(WIDE), dataset(WIDE, BurnedInAnnotation="YES")])
    for mark in MARKS:
        assert mark not in str(raised.value)


def test_a_path_among_a_patients_images_is_told_what_to_write(tmp_path):
    with pytest.raises(ValueError, match=r"images\.0\n.*give DicomImage\(path\) for DICOM"):
        svc.PatientContext(images=[tmp_path / "ct.dcm"])


def test_a_model_cannot_hand_dicom_to_a_decoder(monkeypatch):
    monkeypatch.setattr("langchain_svc._images.clinical.draw", None)
    text = base64.b64encode(saved(dataset(WIDE))).decode()
    with Sandbox() as box, svc.SvcCancerRisk(**box.medical) as risk:
        call = {
            "name": risk.name,
            "args": {"symptoms": "a cough", "images": [text]},
            "id": "1",
            "type": "tool_call",
        }
        said = risk.invoke(call)
        assert box.requests == []
    assert said.status == "error"
    assert "PNG or JPEG" in said.content


def test_elements_that_name_a_patient_are_never_read(recwarn):
    ds = dataset(WIDE)
    ds.add(pydicom.DataElement("PatientBirthDate", "DA", "19630616", validation_mode=0))
    data = saved(ds).replace(
        b"19630616", b"no date!"
    )  # read, it would be a warning that repeats it
    assert drawn(data).shape == (80, 70)
    assert [str(one.message) for one in recwarn] == []
    assert (
        json.dumps(repr(svc.DicomImage(data)))
        == "\"DicomImage(frame=None, window=None, blank=(), burned_in='refuse', longest_side=2048)\""
    )


def test_what_is_drawn_in_unused_bits_is_not_shown():
    ds = dataset(RAMP | 0x8000, bits=12)
    assert (drawn(ds) == drawn(dataset(RAMP, bits=12))).all()


def test_a_source_is_a_file_or_its_bytes_and_no_text():
    with pytest.raises(svc.SvcRequestError, match=r"source must be .*Path"):
        svc.DicomImage("ct.dcm")


# -- what kind of picture -------------------------------------------------------------------------

KINDS = [
    ([{"BodyPartExamined": "CHEST"}], "chest CT"), ([{}], "CT"), ([{"Modality": "MR", "BodyPartExamined": "QUUXBERG"}], "MRI"),
    ([{"BodyPartExamined": "HEAD"}, {"BodyPartExamined": "HEAD"}, {"Modality": "PT"}], "head CT, PET"), ([{"Modality": "OT", "BurnedInAnnotation": "NO"}], None),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "kind"), KINDS)
@pytest.mark.parametrize("form", ["dataset", "bytes", "base64"])
def test_the_imaging_type_is_that_of_the_images(headers, kind, form):
    images = [dataset([[1, 2], [3, 4]], **header) for header in headers]
    if form != "dataset":
        images = [saved(one) for one in images]
    if form == "base64":
        images = [base64.b64encode(one).decode() for one in images]
    assert svc.PatientContext(images=images).imaging_type == kind
    assert svc.PatientContext(images=images, imaging_type="x").imaging_type == "x"


def test_a_body_part_that_is_no_code_is_told_to_nobody(caplog):
    file = saved(dataset([[1, 2], [3, 4]], BodyPartExamined="QUUXBERG"))
    file = file.replace(b"QUUXBERG", b"Quuxberg")
    patient = svc.PatientContext(images=[file])
    assert patient.imaging_type == "CT"
    assert "uuxberg" not in caplog.text
